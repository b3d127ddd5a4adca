from __future__ import annotations

import pickle

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.verbs.parts.models import open_model
from interlingua.verbs.parts.shared_options import ModelOptions, TwoTextsOptions
from interlingua.verbs.parts.sources import two_texts
from tests.mining.invented import embed, write_lines
from tests.storage.test_remote import store as store
from tests.tiny import tiny_encoder

FUNCTION = "tests.mining.invented:embed"


def sides(
    folder, model=FUNCTION, names=("a.de", "b.en"), *, always_load=False, elsewhere=False, **options
):
    paths = tuple(folder / name for name in names)
    for path in paths:
        write_lines(path, ["one\tde1 de2", "two\ten1 en2"])
    given = TwoTextsOptions(model, *map(str, paths), **{"backend": "function", **options})
    return two_texts(given, folder, always_load=always_load, elsewhere=elsewhere)


def test_languages_and_layout_show_in_the_files(tmp_path):
    source, target, identity = sides(tmp_path)
    assert (source.language, target.language, source.layout) == ("deu_Latn", "eng_Latn", "ids")
    assert identity == FUNCTION
    np.testing.assert_allclose(source.encode(["de1 de2"]), embed(["de1 de2"]), rtol=1e-5)
    assert sides(tmp_path, source_language="zh", layout="lines")[0][1:3] == ("zho_Hans", "lines")
    with pytest.raises(DataError, match="no language"):
        sides(tmp_path, names=("a.txt", "b.en"))


def test_the_prompt_is_part_of_what_tells_the_model(tmp_path):
    assert sides(tmp_path, prompt="query: ")[2] != sides(tmp_path)[2]


def test_nothing_is_loaded_where_all_vectors_are_known(tmp_path):
    np.save(tmp_path / "v.npy", np.ones((2, 3), np.float32))
    known = {"source_vectors": tmp_path / "v.npy", "target_vectors": tmp_path / "v.npy"}
    source, _, identity = sides(tmp_path, model="nowhere", backend="interlingua", **known)
    assert source.encode is None
    assert identity == "vectors of nowhere"
    assert sides(tmp_path, always_load=True, **known)[0].encode is not None


def test_several_files_and_files_elsewhere_are_one_text(tmp_path, store):
    for number in (1, 2):
        store.pipe(f"/x/part-{number}.de", f"id{number}\tde{number} de9\n".encode())
    names = ("memory://x/part-*.de", str(write_lines(tmp_path / "b.en", ["id1\ten1"])))
    source, target, _ = two_texts(TwoTextsOptions(FUNCTION, *names, backend="function"), tmp_path)
    assert (source.path, source.language, source.layout) == (names[0], "deu_Latn", "ids")
    assert [path.read_text() for path in source.files] == ["id1\tde1 de9\n", "id2\tde2 de9\n"]
    assert list(target.files) == [tmp_path / "b.en"]


def test_a_model_that_is_to_work_elsewhere_goes_by_its_name(tmp_path):
    source, _, identity = sides(tmp_path, elsewhere=True)
    sent = pickle.dumps(source.encode)
    assert len(sent) < 1000
    np.testing.assert_allclose(pickle.loads(sent)(["de1 de2"]), embed(["de1 de2"]), rtol=1e-5)
    assert identity == sides(tmp_path)[2]


def test_a_model_in_memory_is_that_of_its_folder(word_vocabulary, tmp_path):
    encoder = tiny_encoder(word_vocabulary)
    encoder.save(tmp_path / "m")
    texts = ["de1 de2", "de3"]
    for prompt in (None, "ru1 "):
        here, identity = open_model(ModelOptions(encoder, prompt=prompt))
        there, named = open_model(ModelOptions(tmp_path / "m", prompt=prompt))
        np.testing.assert_allclose(here(texts), there(texts), atol=1e-6)
        assert identity == named


def test_a_function_gets_a_language_if_it_takes_one():
    given = []

    def takes(texts, language=None):
        given.append(language)
        return embed(texts)

    open_model(ModelOptions(takes))[0](["de1"], language="deu_Latn")
    np.testing.assert_allclose(
        open_model(ModelOptions(embed))[0](["de1"], language="deu_Latn"), embed(["de1"])
    )
    assert given == ["deu_Latn"]


def test_an_encoder_of_another_library_gets_the_prompt():
    given = []

    class Other:
        def encode(self, texts, **how):
            given.append(how)
            return np.full((len(texts), 2), 5.0)

    found = open_model(ModelOptions(Other(), prompt="q: "))[0](["a", "b"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)
    assert given == [{"prompt": "q: "}]


@pytest.mark.parametrize("model", [["a", "b"], 3])
def test_what_does_not_embed_is_refused(model):
    with pytest.raises(ConfigError, match="expected an encoder"):
        ModelOptions(model)
