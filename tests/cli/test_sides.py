from __future__ import annotations

import pickle

import numpy as np
import pytest

from interlingua.cli.sides import two_sides
from interlingua.errors import DataError
from tests.mining.invented import embed, write_lines
from tests.test_remote import store as store

HOW = {"prompt": None, "batch_tokens": 100, "dtype": None, "device": None, "settings": ()}
FUNCTION = "tests.mining.invented:embed"


def sides(folder, model=FUNCTION, names=("a.de", "b.en"), languages=(None, None), layout="auto", known=(None, None),
          backend="function", **options):  # fmt: skip
    paths = tuple(folder / name for name in names)
    for path in paths:
        write_lines(path, ["one\tde1 de2", "two\ten1 en2"])
    names = tuple(map(str, paths))
    return two_sides(model, names, languages, layout, known, folder=folder, backend=backend, **(HOW | options))


def test_languages_and_layout_show_in_the_files(tmp_path):
    source, target, identity = sides(tmp_path)
    assert (source.language, target.language, source.layout) == ("deu_Latn", "eng_Latn", "ids")
    assert identity == FUNCTION
    np.testing.assert_allclose(source.encode(["de1 de2"]), embed(["de1 de2"]), rtol=1e-5)
    assert sides(tmp_path, languages=("zh", None), layout="lines")[0][1:3] == ("zho_Hans", "lines")
    with pytest.raises(DataError, match="no language in its name"):
        sides(tmp_path, names=("a.txt", "b.en"))


def test_the_prompt_is_part_of_what_tells_the_model(tmp_path):
    assert sides(tmp_path, prompt="query: ")[2] != sides(tmp_path)[2]


def test_nothing_is_loaded_where_all_vectors_are_known(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2, 3), np.float32))
    known = (str(tmp_path / "v.npy"),) * 2
    source, _, identity = sides(tmp_path, model="nowhere", known=known, backend="interlingua")
    assert source.encode is None
    assert identity == "vectors of nowhere"
    assert sides(tmp_path, known=known, always_load=True)[0].encode is not None


def test_several_files_and_files_elsewhere_are_one_text(tmp_path, store):
    for number in (1, 2):
        store.pipe(f"/x/part-{number}.de", f"id{number}\tde{number} de9\n".encode())
    names = ("memory://x/part-*.de", str(write_lines(tmp_path / "b.en", ["id1\ten1"])))
    source, target, _ = two_sides(FUNCTION, names, (None, None), "auto", (None, None), folder=tmp_path,
                                  backend="function", **HOW)  # fmt: skip
    assert (source.path, source.language, source.layout) == (names[0], "deu_Latn", "ids")
    assert [path.read_text() for path in source.files] == ["id1\tde1 de9\n", "id2\tde2 de9\n"]
    assert list(target.files) == [tmp_path / "b.en"]


def test_a_model_that_is_to_work_elsewhere_goes_by_its_name(tmp_path):
    source, _, identity = sides(tmp_path, elsewhere=True)
    sent = pickle.dumps(source.encode)
    assert len(sent) < 1000
    np.testing.assert_allclose(pickle.loads(sent)(["de1 de2"]), embed(["de1 de2"]), rtol=1e-5)
    assert identity == sides(tmp_path)[2]
