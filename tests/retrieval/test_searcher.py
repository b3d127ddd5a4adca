"""From files to answers: balanced rankings, fusion, and an index that changes with its files."""

from __future__ import annotations

import json
import random
import threading

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.affine_maps import fit_language_map, language_statistics
from interlingua.encoder.language_maps.language_map_files import write_map
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.retrieval.feedback import rankings_with_feedback
from interlingua.retrieval.passage_index import Added, PassageIndex
from interlingua.retrieval.ranking import fused, merged
from interlingua.retrieval.searcher import (
    Searcher,
    add_to_index,
    build_index,
    delete_from_index,
    load_index_model,
)
from interlingua.storage.formats import PASSAGE_INDEX
from interlingua.storage.record import read_record, write_record
from tests.encoder.conftest import SENTENCES, tiny_vocabulary

pytest.importorskip("lancedb")
LANGUAGES = ("deu_Latn", "eng_Latn", "tha_Thai")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    vocabulary = tiny_vocabulary(frame=True)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    folder = tmp_path_factory.mktemp("model") / "tiny"
    Encoder.from_scratch(config, vocabulary).save(folder)
    return str(folder)


def write_files(folder):
    """Write a file of 20 lines in each language."""
    draw = random.Random(0)
    words = " ".join(SENTENCES).split()
    for language in LANGUAGES:
        lines = [" ".join(draw.choices(words, k=6)) for _ in range(20)]
        (folder / f"{language}.txt").write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    return sorted(folder.glob("*.txt"))


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path)


@pytest.fixture
def searcher(model, files, tmp_path):
    assert build_index(model, files, tmp_path / "index") == Added(60, 0, 0)
    index = PassageIndex(tmp_path / "index")
    return Searcher(index, load_index_model(index))


def test_the_ranking_is_that_of_the_cosines(searcher, model, files):
    encoder = Encoder.load(model)
    lines = [
        (f"{path.name}:{n}", line)
        for path in files
        for n, line in enumerate(path.read_text().splitlines(), 1)
    ]
    cosines = encoder.encode([line for _, line in lines]) @ encoder.encode(["Die Katze"])[0]
    expected = [lines[row][0] for row in np.argsort(-cosines)[:5]]
    assert [hit.id for hit in searcher.search("Die Katze", top=5).hits] == expected


def test_another_model_is_refused(searcher, model, tmp_path):
    """Use a model with vectors of equal width and other meaning."""
    torch.manual_seed(1)
    vocabulary = tiny_vocabulary(frame=True)
    other = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    Encoder.from_scratch(other, vocabulary).save(tmp_path / "other")
    assert (
        load_index_model(searcher.index, model=model).settings
        == load_index_model(searcher.index).settings
    )
    with pytest.raises(ConfigError, match="another value of the model"):
        load_index_model(searcher.index, model=str(tmp_path / "other"))


def ids(hits, language=None):
    return [hit.id for hit in hits if language in (None, hit.language)]


def test_the_best_of_each_language_come_first(searcher):
    plain = searcher.search("Die Katze", top=60)
    balanced = searcher.search("Die Katze", top=6, per_language=2)
    assert {hit.id for hit in balanced.hits} == {
        name for code in LANGUAGES for name in ids(plain.hits, code)[:2]
    }
    scores = [hit.score for hit in balanced.hits]
    assert scores == sorted(scores, reverse=True)
    assert [share.found for share in balanced.shares] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("top", [9, 60])
@pytest.mark.parametrize(
    ("mode", "others"), [("vector", "vector"), ("text", "text"), ("feedback", "vector")]
)
def test_balanced_hits_are_followed_by_the_others(searcher, mode, others, top):
    first = searcher.search("Die Katze", top=6, per_language=2, mode=mode).hits
    plain = searcher.search("Die Katze", top=60, mode=others).hits
    found = searcher.search("Die Katze", top=top, per_language=2, mode=mode)
    rest = [hit for hit in plain if hit.id not in ids(first)]
    assert found.hits == (first + rest)[:top]
    assert len(found.hits) > 6
    counts = {share.language: round(share.found * len(found.hits)) for share in found.shares}
    assert counts == {code: len(ids(found.hits, code)) for code in LANGUAGES}


def test_balanced_fusion_is_followed_by_the_plain_one(searcher):
    plain = searcher.search("Die Katze", top=60, mode="hybrid").hits
    found = searcher.search("Die Katze", top=60, per_language=1, mode="hybrid").hits
    assert set(ids(found)) == set(ids(plain))
    assert {hit.language for hit in found[:3]} == set(LANGUAGES)


@pytest.mark.parametrize("question", SENTENCES)
def test_balanced_fusion_has_no_more_of_a_language(searcher, question):
    """Check also if the best passages by words differ from those by vectors."""
    best = [searcher.search(question, top=15, mode=mode).hits for mode in ("vector", "text")]
    found = searcher.search(question, top=6, per_language=2, mode="hybrid").hits
    assert {code: len(ids(found, code)) for code in LANGUAGES} == dict.fromkeys(LANGUAGES, 2)
    assert set(ids(found)) >= set(ids(best[0][:1])) & set(ids(best[1][:1]))
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


def test_the_order_inside_a_language_is_kept(searcher):
    plain = searcher.search("Die Katze", top=60).hits
    found = searcher.search("Die Katze", top=60, per_language=2).hits
    assert ids(found) != ids(plain)
    for code in LANGUAGES:
        assert ids(found, code) == ids(plain, code)
    best = plain[0].language
    found = searcher.search("Die Katze", top=60, per_language=2, mode="feedback").hits
    assert ids(found, best) == ids(plain, best)


def test_other_hits_are_of_the_languages_wanted(searcher):
    found = searcher.search("Die Katze", languages=["th"], per_language=1, top=5).hits
    assert ids(found) == ids(searcher.search("Die Katze", languages=["th"], top=5).hits)


def test_feedback_changes_the_languages_of_other_passages_alone(searcher):
    plain = searcher.search("Die Katze", top=6, per_language=2).hits
    found = searcher.search("Die Katze", top=6, per_language=2, mode="feedback").hits
    assert found[0].id == plain[0].id
    first = plain[0].language
    assert set(ids(found, first)) == set(ids(plain, first))
    question = searcher.model.embed_question("Die Katze")
    parts = rankings_with_feedback(searcher.index, question, 6, LANGUAGES)
    assert searcher.search("Die Katze", top=6, mode="feedback").hits == merged(parts, 6)
    alone = {"languages": ["th"]}
    found = searcher.search("Die Katze", mode="feedback", **alone).hits
    assert ids(found) == ids(searcher.search("Die Katze", **alone).hits)


def test_vectors_are_not_replaced_by_words(searcher):
    for mode in ("vector", "hybrid", "feedback"):
        with pytest.raises(ConfigError, match="vector"):
            searcher.rank("Die Katze", None, mode=mode)


def test_only_the_languages_wanted_are_searched(searcher):
    ranking = searcher.search("Die Katze", top=60, languages=["th", "de"])
    assert {hit.language for hit in ranking.hits} == {"deu_Latn", "tha_Thai"}
    indexed = {share.language: share.indexed for share in ranking.shares}
    assert indexed == {"deu_Latn": 0.5, "tha_Thai": 0.5}
    with pytest.raises(DataError, match="no passage in fra_Latn"):
        searcher.search("Die Katze", languages=["fr"])


def test_hybrid_fuses_both_rankings_inside_of_each_language(searcher):
    vector = searcher.model.embed_question("Die Katze")
    nearest = searcher.search("Die Katze", top=100).hits
    matching, cosines = searcher.index.matching_with_cosines("Die Katze", vector, 100)
    assert cosines == pytest.approx(
        {hit.id: hit.score for hit in nearest if hit.id in cosines}, abs=1e-6
    )
    cosines |= {hit.id: hit.score for hit in nearest}
    found = searcher.search("Die Katze", top=20, mode="hybrid").hits
    assert found == fused(nearest, matching, cosines)[:20]
    assert [hit.language for hit in found] == [hit.language for hit in nearest[:20]]
    assert ids(found) != ids(nearest[:20])


@pytest.mark.parametrize(
    "options", [{"mode": "vektor"}, {"top": 0}, {"per_language": 0}, {"top": 10**6}]
)
def test_options_out_of_range_are_refused(searcher, options):
    with pytest.raises(ConfigError):
        searcher.search("Die Katze", **options)


def test_passages_are_added_replaced_and_deleted(searcher, tmp_path):
    folder = tmp_path / "index"
    records = [
        {"id": "deu_Latn.txt:1", "text": "Neu.", "language": "de"},
        {"id": "new", "text": "Un.", "lang": "fr"},
    ]
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert add_to_index(folder, [tmp_path / "more.jsonl"]) == Added(1, 1, 0)
    assert PassageIndex(folder).languages() == dict.fromkeys(LANGUAGES, 20) | {"fra_Latn": 1}
    assert delete_from_index(folder, ["new"]) == 1
    assert delete_from_index(folder, where="language = 'deu_Latn'") == 20


def test_files_of_equal_names_keep_their_passages(model, tmp_path, monkeypatch):
    for folder in ("a", "b", "b/c"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "de.txt").write_text(f"Die Katze {folder}\nDer Hund {folder}\n")
    monkeypatch.chdir(tmp_path)
    assert build_index(model, ["a/de.txt", "b/de.txt"], "index") == Added(4, 0, 0)
    assert add_to_index("index", ["b/c/de.txt"]) == Added(2, 0, 0)
    monkeypatch.chdir(tmp_path / "b")
    assert add_to_index("../index", ["de.txt", tmp_path / "a" / "de.txt"]) == Added(0, 0, 4)
    index = PassageIndex(tmp_path / "index")
    hits = Searcher(index, load_index_model(index)).search("Katze", mode="text").hits
    assert {hit.id: hit.text for hit in hits} == {
        f"{folder}/de.txt:1": f"Die Katze {folder}" for folder in ("a", "b", "b/c")
    }


def test_a_file_that_became_shorter_leaves_no_line(searcher, files, tmp_path):
    kept = files[0].read_text(encoding="utf-8").splitlines()[:5]
    files[0].write_text("\n".join(["Neu.", *kept[1:]]), encoding="utf-8")
    assert add_to_index(tmp_path / "index", [files[0]]) == Added(0, 1, 4, deleted=15)
    index = PassageIndex(tmp_path / "index")
    assert index.languages() == {"deu_Latn": 5, "eng_Latn": 20, "tha_Thai": 20}
    found = Searcher(index, load_index_model(index)).search("Neu.", top=60, languages=["de"]).hits
    assert {hit.text for hit in found} == {"Neu.", *kept[1:]}


def test_a_fault_in_the_last_file_stops_before_the_first_commit(searcher, model, files, tmp_path):
    for content in (
        '{"id": "x", "text": "a"}\n{"id": "x", "text": "b"}\n',
        "",
        '{"text": "a"}\n{"te',
    ):
        (tmp_path / "last.jsonl").write_text(content)
        with pytest.raises(DataError, match=r"last\.jsonl"):
            build_index(model, [*files, tmp_path / "last.jsonl"], tmp_path / "other")
        assert not (tmp_path / "other").exists()
        (tmp_path / "new.txt").write_text("Neu.\n")
        with pytest.raises(DataError, match=r"last\.jsonl"):
            add_to_index(tmp_path / "index", [tmp_path / "new.txt", tmp_path / "last.jsonl"])
        assert PassageIndex(tmp_path / "index").count() == 60


def test_a_map_goes_with_the_index(model, files, tmp_path):
    vectors = Encoder.load(model).encode(SENTENCES)

    def write(cut):
        statistics = language_statistics([("deu_Latn", vectors[:cut]), ("eng_Latn", vectors[cut:])])
        write_map(fit_language_map(statistics), tmp_path / "language_map.safetensors")

    write(4)
    build_index(model, files, tmp_path / "index", language_map=tmp_path)
    (tmp_path / "language_map.safetensors").unlink()
    index = PassageIndex(tmp_path / "index")
    question = files[0].read_text().splitlines()[0]
    [hit] = Searcher(index, load_index_model(index)).search(question, top=1).hits
    assert hit.score == pytest.approx(1, abs=1e-5)
    with pytest.raises(ConfigError, match="language map"):
        build_index(model, files, tmp_path / "index")
    write(3)
    with pytest.raises(ConfigError, match="language map"):
        build_index(model, files, tmp_path / "index", language_map=tmp_path)


def test_a_model_that_moved_can_be_named(searcher, model, tmp_path):
    path = tmp_path / "index" / "index.json"
    record = read_record(path, PASSAGE_INDEX)
    write_record(path, PASSAGE_INDEX, {**record, "model": str(tmp_path / "gone")})
    index = PassageIndex(tmp_path / "index")
    with pytest.raises(CheckpointError, match="gone"):
        load_index_model(index)
    assert load_index_model(index, model=model).settings.digest == record["digest"]


@pytest.mark.parametrize("files", [[], ["nothing.txt"], ["."]])
def test_files_are_checked_before_the_model_is_read(files, tmp_path):
    with pytest.raises((ConfigError, DataError)):
        build_index("no such model", files, tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_change_is_read_behind_a_refresh_that_is_running(searcher):
    """Check a refresh that may have read the index before the change."""
    with searcher._refreshing:
        waiting = threading.Thread(target=searcher.refresh, kwargs={"after": 0})
        waiting.start()
        searcher.refresh(after=0.001)  # a search continues meanwhile
        delete_from_index(searcher.index.folder, where="language = 'tha_Thai'")
        assert waiting.is_alive()
    waiting.join(10)
    assert "tha_Thai" not in searcher.languages
