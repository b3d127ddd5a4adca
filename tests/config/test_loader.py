from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from interlingua import config
from interlingua.config import paths, toml, unread
from interlingua.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    learning_rate: float = 1e-4
    schedule: Literal["linear", "cosine"] = "linear"
    betas: tuple[float, float] = (0.9, 0.999)

    def __post_init__(self) -> None:
        if self.learning_rate <= 0:
            raise ConfigError(f"learning_rate must be above 0, got {self.learning_rate}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    corpus: Path
    steps: int = 10
    name: str | None = None
    caps: dict[str, float] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)
    parts: tuple[Inner, ...] = ()


def write(folder, text):
    folder.mkdir(exist_ok=True)
    path = folder / "c.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_nested_sections_and_overrides(tmp_path):
    path = write(
        tmp_path,
        'corpus = "x"\n[inner]\nlearning_rate = 1\n[caps]\ndeu_Latn = 0.5\n[[parts]]\nschedule ='
        ' "cosine"\n',
    )
    got = config.load_config(
        Outer, path, overrides=["inner.schedule=cosine", "steps=3", "name=a b"]
    )
    assert got == Outer(
        corpus=tmp_path / "x",
        steps=3,
        name="a b",
        caps={"deu_Latn": 0.5},
        inner=Inner(learning_rate=1.0, schedule="cosine"),
        parts=(Inner(schedule="cosine"),),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corpus = 'x'\nstep = 3", "key 'step'; .*'steps'"),
        ("steps = 3", "corpus is missing"),
        ("corpus = 'x'\nsteps = '3'", "steps: expected .*whole number"),
        ("corpus = 'x'\nsteps = true", "steps: expected .*whole"),
        ("corpus = 'x'\n[inner]\nschedule = 'linaer'", "did you mean 'linear'"),
        ("corpus = 'x'\n[inner]\nlearning_rate = 0", "learning_rate must be above 0"),
        ("corpus = 'x'\n[inner]\nlearning_rate = nan", "inner.learning_rate: expected .*nan"),
        (
            "corpus = 'x'\n[inner]\nbetas = [0.9]",
            "inner.betas: .* 2, .* 1",
        ),
        ("corpus = 'x'\ninner = 3", "inner: expected a section, found 3"),
        ("corpus = '$NOT_SET_ANYWHERE/x'", r"\$NOT_SET_ANYWHERE is not"),
        ("corpus = ", "not valid TOML"),
    ],
)
def test_complaints_name_file_key_and_remedy(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        config.load_config(Outer, write(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "c.toml"))


def test_missing_file_and_bad_override(tmp_path):
    with pytest.raises(ConfigError, match="file not found"):
        config.load_config(Outer, tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match=r"expected section\.key=value"):
        config.load_config(Outer, write(tmp_path, "corpus = 'x'"), overrides=["steps"])


def test_paths_expand_home_and_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("PLACE", "/data")
    read = config.load_config(Outer, write(tmp_path, "corpus = '$PLACE/x'"))
    assert read.corpus == Path("/data/x")


def test_toml_round_trip(tmp_path):
    original = Outer(
        corpus=tmp_path / 'a "quoted"\\path',
        name="línea\nuna",
        caps={"zho_Hans": 0.25, "a.b": 1e-5},
        inner=Inner(learning_rate=3e-4),
        parts=(Inner(), Inner(betas=(0.1, 0.2))),
    )
    assert config.load_config(Outer, write(tmp_path, toml.config_to_toml(original))) == original


def test_a_tuple_from_python_is_taken_as_a_list_is():
    given = {"corpus": "x", "parts": ({"betas": (0.1, 0.2)},)}
    assert config.from_mapping(Outer, given).parts == (Inner(betas=(0.1, 0.2)),)
    with pytest.raises(ConfigError, match="a list of 3"):
        config.from_mapping(Inner, {"betas": (0.1, 0.2, 0.3)})


def test_options_that_nothing_reads_are_refused():
    outer = Outer(corpus=Path("x"), steps=11, caps={"a": 0.5})
    unread.refuse_unread(outer, "name", "inner", reason="name = None", when=True)
    unread.refuse_unread(outer, "steps", "caps", reason="name = None", when=False)
    for name in ("steps", "caps"):
        with pytest.raises(ConfigError, match=f"{name} has no effect .*None"):
            unread.refuse_unread(outer, "inner", name, reason="name = None", when=True)


@pytest.mark.parametrize(
    ("where", "message", "expected"),
    [
        ("a.toml: run", "run: seed is odd", "a.toml: run: seed is odd"),
        ("a.toml: data: pairs", "data.pairs: kind is odd", "a.toml: data: pairs: kind is odd"),
        ("a.toml: data: pairs", "pairs: kind is odd", "a.toml: data: pairs: kind is odd"),
        ("a.toml: run", "seed: odd", "a.toml: run: seed: odd"),
        ("config", "odd", "config: odd"),
    ],
)
def test_a_section_is_named_once(where, message, expected):
    @dataclass
    class Odd:
        def __post_init__(self):
            raise ConfigError(message)

    with pytest.raises(ConfigError) as caught:
        config.from_mapping(Odd, {}, where=where)
    assert str(caught.value) == expected


def test_paths_of_a_file_start_at_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLACE", "data")
    for text, overrides, expected in (
        ("../x/y", [], "x/y"),
        ("../x/y", ["corpus=z"], "z"),  # typed in the shell
        (f"{tmp_path}/whole", [], tmp_path / "whole"),
        ("$PLACE/x", [], "data/x"),  # where the variable was typed
    ):
        write(tmp_path / "sub", f'corpus = "{text}"')
        read = config.load_config(Outer, "sub/c.toml", overrides=overrides)
        assert read.corpus == Path(expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    models: tuple[paths.PathText, ...] = ()
    paths: tuple[Path, ...] = ()
    name: str = ""


def test_what_is_no_path_of_this_machine_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'models = ["hf:a/b", "m", "{nli.best}", ""]\npaths = ["hf:data", "s3://b/k"]\nname = "m"'
    write(tmp_path / "sub", text)
    got = config.load_config(Models, "sub/c.toml")
    assert got == Models(
        models=("hf:a/b", "sub/m", "{nli.best}", ""),
        paths=(Path("hf:data"), Path("s3://b/k")),
        name="m",
    )
    assert type(got.name) is str
    assert type(got.models[0]) is str


def test_the_name_of_an_installed_model_stays_unless_a_folder_has_it(tmp_path, monkeypatch):
    described = tmp_path / "packages" / "small_package-1.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: small-package\nVersion: 1\n")
    (described / "entry_points.txt").write_text("[interlingua.models]\nsmall = nowhere:folder\n")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    path = write(tmp_path, 'models = ["small", "other", "a/small"]')
    read = config.load_config(Models, path)
    assert read.models == ("small", f"{tmp_path}/other", f"{tmp_path}/a/small")
    assert paths.with_absolute_paths(read) == read
    (tmp_path / "small").mkdir()
    assert config.load_config(Models, path).models[0] == f"{tmp_path}/small"


def test_a_byte_order_mark_is_no_error(tmp_path):
    path = write(tmp_path, "\ufeffcorpus = 'x'\n")
    assert config.load_config(Outer, path).corpus == tmp_path / "x"


@pytest.mark.parametrize(
    "key", ["a" + ".a" * 50_000, "a" + ' . "a"' * 50_000, "x = {a" + ".'b'" * 50_000 + " = 1}"]
)
def test_a_key_of_very_many_parts_is_refused_at_once(tmp_path, key):
    (tmp_path / "c.toml").write_text(key if "{" in key else f"{key} = 1")
    with pytest.raises(ConfigError, match=r"c\.toml.*100 parts"):
        toml.load_toml(tmp_path / "c.toml")
