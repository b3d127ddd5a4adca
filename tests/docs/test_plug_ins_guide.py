"""docs/how-to/plug-ins.md: its package is built and installed, and every name that it adds is
used."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import interlingua
from interlingua.cli import main
from interlingua.config import registry
from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.errors import ConfigError
from tests.conftest import pairs
from tests.docs.sessions import compare_page, is_excerpt, opening_of
from tests.mining.invented import corpora, write_lines
from tests.training.runs import losses, records

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "plug-ins.md"
QUICK = {
    'output = "corpus"': 'output = "corpus"\nprocesses = 1\nvalidation = {pairs = 20}',
    "size = 8000": "size = 60",
    '"ems-small"': '"ems-tiny"\nhidden_dropout_prob = 0.0\nattention_probs_dropout_prob = 0.0',
    "max_steps = 2000": "max_steps = 3\nlogging_steps = 1\n"
    'device = "cpu"\nthreads = 1\nprecision = "fp32"',
}
"""Text of the page -> replacement that is fast enough for a test."""
WITH_A_MISTAKE = "leters"
TABLES = {
    "method": registry.METHODS,
    "task": registry.TASKS,
    "check": registry.CHECKS,
    "format": registry.FORMATS,
    "backend": registry.BACKENDS,
    "analysis": registry.ANALYSES,
}


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.M | re.S)


def write_files(folder):
    """Write the blocks that start with the name of a file."""
    for body in blocks("toml") + blocks("python"):
        name = re.match(r"# (\S+)\n", body)[1]
        for long, short in QUICK.items():
            body = body.replace(long, short)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body, encoding="utf-8")


def commands():
    joined = re.sub(r"\\\n\s*", "", "".join(blocks("console")))
    return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


def run(command):
    program, *arguments = shlex.split(command)
    assert program == "interlingua"
    if "--devices" in arguments:  # several processes: not in that of the tests
        paths = [str(Path("site").resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(
            [sys.executable, "-m", "interlingua", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as stop,
    ):
        main.main(arguments)
    return Ran(stop.value.code or 0, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """The page's files, its package in ``site``, and the inputs of its commands."""
    folder = tmp_path_factory.mktemp("plug-ins")
    write_files(folder)
    install = "-m pip install -q --disable-pip-version-check --no-build-isolation --no-deps"
    install += " --no-index --target site ./extras"
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run([sys.executable, *install.split()], cwd=folder, check=True, env=environment)
    write_lines(
        folder / "news.de-en.bars", [f"{a} ||| {b}" for a, b in pairs("deu_Latn", 300, seed=0)]
    )
    sources, targets, _ = corpora(30, 40)
    write_lines(folder / "news.de", sources)
    write_lines(folder / "news.en", targets)
    rows = [
        ("eine Katze schläft", "eine Katze schlaeft", "two dogs run"),
        ("zwei Hunde", "two dogs", "zwei Hunde!"),
    ]
    write_lines(folder / "choices" / "deu_Latn-eng_Latn.tsv", ["\t".join(row) for row in rows])
    return folder


@pytest.fixture(scope="module", autouse=True)
def installed(workplace):
    with contextlib.chdir(workplace), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(workplace / "site")])
        yield


@pytest.fixture(scope="module")
def ran(workplace, installed):
    """Command -> result, in the order of the page."""
    pages_commands = [command for command in commands() if command.startswith("interlingua")]
    return {command: run(command) for command in pages_commands}


def command_with(ran, part):
    [found] = [result for command, result in ran.items() if part in command]
    return found


def test_all_commands_end_well_but_the_wrong_one(ran):
    failed = {command: result.err for command, result in ran.items() if result.code}
    assert len(ran) == 10
    assert [command for command in failed if WITH_A_MISTAKE not in command] == [], failed


def test_the_first_command_prints_what_the_page_shows(ran):
    text = GUIDE.read_text(encoding="utf-8")
    opening = opening_of(text)
    command, shown = opening.group(2).split("\n", 1)
    result = ran[command.removeprefix("$ ")]
    output = "".join(f"{line.rstrip()}\n" for line in (result.err + result.out).splitlines())
    if is_excerpt(shown, output):
        output = shown
    compare_page(GUIDE, f"{text[: opening.start(2)]}{command}\n{output}{text[opening.end(2) :]}")


def test_the_installed_method_was_trained(workplace, ran):
    lines = (workplace / "run" / "metrics.jsonl").read_text().splitlines()
    assert any(
        {"close", "apart"} <= {key.rpartition("/")[2] for key in json.loads(line)} for line in lines
    )
    assert interlingua.load("run").dim > 0


def test_vicreg_is_short_and_is_its_equations():
    [source] = [body for body in blocks("python") if "class VICReg(" in body]
    assert len(source.splitlines()) <= 50
    vicreg = importlib.import_module("my_extras.vicreg")
    z = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    columns = z.T.tolist()
    means = [sum(column) / 7 for column in columns]

    def product(i, j):
        pairs = zip(columns[i], columns[j], strict=True)
        return sum((a - means[i]) * (b - means[j]) for a, b in pairs) / 6

    spread = sum(max(0, 1 - math.sqrt(product(i, i) + 1e-4)) for i in range(3)) / 3
    assert float(vicreg.variance(z)) == pytest.approx(spread)
    crossed = sum(product(i, j) ** 2 for i in range(3) for j in range(3) if i != j) / 3
    assert float(vicreg.covariance(z)) == pytest.approx(crossed)
    assert spread > 0


def test_two_processes_compute_the_losses_of_one(workplace, ran):
    """Compare the variances of a gathered batch, which differ from those of each half."""
    one, two = losses(workplace / "vicreg"), losses(workplace / "vicreg-2")
    assert len(one) == 3
    assert two == pytest.approx(one, rel=1e-5)
    assert "devices = 2" in (workplace / "vicreg-2" / "config.toml").read_text(encoding="utf-8")


def test_a_term_of_a_combination_is_logged_by_its_label(workplace, ran):
    rows = records(workplace / "sum", "train")
    assert {"spread_invariance", "spread_variance", "spread_covariance", "rank"} <= rows[0].keys()


RETURNED = {
    "nothing": ("None", "nothing"),
    "tensor": ("loss", "a tensor"),
    "dict": ("{'loss': loss}", "a dict"),
    "rows": ("self.weighted(close=a.square())", "shape"),
    "constant": ("self.weighted(close=loss.detach())", "detach()"),
}
AS_TERM = (
    '{{name = "combination", terms = {{own = {{method = "{0}"}}, rank = {{method = "labse"}}}}}}'
)


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *[(kind, '{{name = "{0}"}}') for kind in RETURNED],
        *[(kind, AS_TERM) for kind in RETURNED if kind != "constant"],
    ],
)
def test_a_forward_without_a_loss_is_one_line(ran, kind, method, tmp_path, monkeypatch):
    returned, said = RETURNED[kind]
    (tmp_path / f"own_{kind}.py").write_text(
        "from my_extras.method import Closer\n\n\nclass Own(Closer):\n"
        "    def forward(self, batch):\n"
        "        a = self.encoder(batch.a)\n        loss = a.square().mean()\n"
        f"        return {returned}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    choice = shlex.quote("method=" + method.format(f"own_{kind}:Own"))
    output = shlex.quote(str(tmp_path / "run"))
    result = run(f"interlingua train train.toml --output {output} --set {choice}")
    assert result.code == 2
    assert "Traceback" not in result.err
    [line] = [line for line in result.err.splitlines() if line.startswith("interlingua: ")]
    assert "method Own" in line
    assert said in line


def test_the_installed_format_was_prepared(workplace, ran):
    manifest = json.loads((workplace / "corpus" / "manifest.json").read_text())
    assert "news.de-en.bars" in json.dumps(manifest)


def test_the_installed_task_scored_the_installed_backend(workplace, ran):
    [file] = (workplace / "results" / "letters").rglob("right_of_two*.json")
    result = json.loads(file.read_text())["interlingua"]
    # The second row's other sentence is its source.
    assert result["groups"]["all_1"]["accuracy"] == 0.5
    assert result["settings"]["limit"] == 50
    assert "letters.width=128" in result["provenance"]["model"]["overrides"]


def test_the_installed_check_rejected_pairs(workplace, ran):
    kept = list(read_pairs(workplace / "pairs.tsv", source_language="de", target_language="en"))
    assert kept
    assert all(len(pair.source.split()) >= 4 for pair in kept)


def test_the_lines_of_the_wrong_command_are_those_of_the_page(ran):
    wrong = command_with(ran, WITH_A_MISTAKE)
    assert wrong.code == 2
    assert wrong.err.strip() in GUIDE.read_text(encoding="utf-8")


def test_the_verbs_take_all_by_their_places(workplace, ran, tmp_path):
    pair = TextPair("ein Haus", "a house", "deu_Latn", "eng_Latn")
    write_pairs([pair], tmp_path / "one.de-en.txt", format="my_extras.format:Bars")
    assert list(read_pairs(tmp_path / "one.de-en.txt", format="my_extras.format:Bars")) == [pair]
    how = {
        "backend": "my_extras.backend:Letters",
        "settings": ["Letters.width=64", "RightOfTwo.limit=1"],
    }
    [result] = interlingua.evaluate(
        "letters", "my_extras.task:RightOfTwo", "choices", output=None, **how
    )
    assert (result.settings["limit"], result.subsets[0].pairs) == (1, 1)
    config = {
        "data": {"corpus": str(workplace / "corpus")},
        "encoder": {"preset": "ems-tiny"},
        "method": {"name": "my_extras.method:Closer", "apart_weight": 1.0},
        "run": {
            "output": str(tmp_path / "run"),
            "max_steps": 2,
            "device": "cpu",
            "threads": 1,
            "precision": "fp32",
        },
    }
    [trained] = interlingua.train(config)
    assert trained.step == 2
    assert 'name = "my_extras.method:Closer"' in (tmp_path / "run" / "config.toml").read_text()


WRONG = {
    "method": "train train.toml --set method.name={}",
    "task": "evaluate letters --backend letters --suite {} --data choices",
    "check": "mine letters news.de news.en -o x.tsv --backend letters --check {}",
    "format": "score letters news.de-en.bars --backend letters --input-format {}",
    "backend": "embed letters news.de -o x.npy --backend {}",
    "analysis": "analyse letters --backend letters --only {} --data choices",
}
NAMES = ["nothing_of_the_kind", "my_extras.nothing:Class", "my_extras.check:Wordz", "json:loads"]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_name_is_one_line_and_exit_code_2(workplace, ran, kind, name):
    result = run(f"interlingua {WRONG[kind].format(name)}")
    assert result.code == 2
    [line] = result.err.strip().splitlines()
    assert name.rpartition(":")[2] in line
    if name == "nothing_of_the_kind":
        assert f"unknown {kind}" in line
        assert all(known in line for known in TABLES[kind].names)
    if name.endswith("Wordz"):
        assert "did you mean 'Words'?" in line


def test_the_page_names_each_group():
    text = GUIDE.read_text(encoding="utf-8")
    assert [table.group for table in TABLES.values() if f"`{table.group}`" not in text] == []


def test_two_packages_with_one_name_are_refused(tmp_path, monkeypatch):
    for package in ("one", "two"):
        described = tmp_path / f"{package}-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        (described / "entry_points.txt").write_text(
            f"[interlingua.checks]\nlong = {package}.check:Long\nhub = x:Y\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"one\.check:Long, two\.check:Long"):
        registry.resolve_name(registry.CHECKS, "long")
    assert registry.resolve_name(registry.CHECKS, "hub").__name__ == "Hubness"
