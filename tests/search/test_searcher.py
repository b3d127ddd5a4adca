"""From files to answers: balanced rankings, fusion, and an index that goes on after kill -9."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_map_files import write_map
from interlingua.encoder.language_maps import fit_language_map, language_statistics
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.search.feedback import rankings_with_feedback
from interlingua.search.passage_index import Added, PassageIndex
from interlingua.search.ranking import fused, merged
from interlingua.search.searcher import Searcher, add_to_index, build_index, delete_from_index, model_of
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


@pytest.fixture
def files(tmp_path):
    draw = random.Random(0)
    words = " ".join(SENTENCES).split()
    for language in LANGUAGES:
        lines = [" ".join(draw.choices(words, k=6)) for _ in range(20)]
        (tmp_path / f"{language}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return sorted(tmp_path.glob("*.txt"))


@pytest.fixture
def searcher(model, files, tmp_path):
    assert build_index(model, files, tmp_path / "index") == Added(60, 0, 0)
    index = PassageIndex(tmp_path / "index")
    return Searcher(index, model_of(index))


def test_the_ranking_is_that_of_the_cosines(searcher, model, files):
    encoder = Encoder.load(model)
    lines = [(f"{path.name}:{n}", line) for path in files for n, line in enumerate(path.read_text().splitlines(), 1)]
    cosines = encoder.encode([line for _, line in lines]) @ encoder.encode(["Die Katze"])[0]
    expected = [lines[row][0] for row in np.argsort(-cosines)[:5]]
    assert [hit.id for hit in searcher.search("Die Katze", top=5).hits] == expected


def ids(hits, language=None):
    return [hit.id for hit in hits if language in (None, hit.language)]


def test_the_best_of_each_language_come_first(searcher):
    plain = searcher.search("Die Katze", top=60)
    balanced = searcher.search("Die Katze", top=6, per_language=2)
    assert {hit.id for hit in balanced.hits} == {name for code in LANGUAGES for name in ids(plain.hits, code)[:2]}
    scores = [hit.score for hit in balanced.hits]
    assert scores == sorted(scores, reverse=True)
    assert [share.found for share in balanced.shares] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("top", [9, 60])
@pytest.mark.parametrize(("mode", "others"), [("vector", "vector"), ("text", "text"), ("feedback", "vector")])
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


def test_the_order_inside_a_language_is_kept(searcher):
    plain = searcher.search("Die Katze", top=60).hits
    found = searcher.search("Die Katze", top=60, per_language=2).hits
    assert ids(found) != ids(plain)
    for code in LANGUAGES:
        assert ids(found, code) == ids(plain, code)
    best = plain[0].language
    assert ids(searcher.search("Die Katze", top=60, per_language=2, mode="feedback").hits, best) == ids(plain, best)


def test_other_hits_are_of_the_languages_wanted(searcher):
    found = searcher.search("Die Katze", languages=["th"], per_language=1, top=5).hits
    assert ids(found) == ids(searcher.search("Die Katze", languages=["th"], top=5).hits)


def test_feedback_changes_the_languages_of_other_passages_alone(searcher):
    plain = searcher.search("Die Katze", top=6, per_language=2).hits
    found = searcher.search("Die Katze", top=6, per_language=2, mode="feedback").hits
    assert found[0].id == plain[0].id
    first = plain[0].language
    assert {hit.id for hit in found if hit.language == first} == {hit.id for hit in plain if hit.language == first}
    parts = rankings_with_feedback(searcher.index, searcher.model.embed_question("Die Katze"), 6, LANGUAGES)
    assert searcher.search("Die Katze", top=6, mode="feedback").hits == merged(parts, 6)
    alone = searcher.search("Die Katze", languages=["th"]).hits
    assert [hit.id for hit in searcher.search("Die Katze", languages=["th"], mode="feedback").hits] == [
        hit.id for hit in alone
    ]


def test_vectors_are_not_replaced_by_words(searcher):
    for mode in ("vector", "hybrid", "feedback"):
        with pytest.raises(ConfigError, match="vector"):
            searcher.rank("Die Katze", None, mode=mode)


def test_only_the_languages_wanted_are_searched(searcher):
    ranking = searcher.search("Die Katze", top=60, languages=["th", "de"])
    assert {hit.language for hit in ranking.hits} == {"deu_Latn", "tha_Thai"}
    assert {share.language: share.indexed for share in ranking.shares} == {"deu_Latn": 0.5, "tha_Thai": 0.5}
    with pytest.raises(DataError, match="no passage in fra_Latn"):
        searcher.search("Die Katze", languages=["fr"])


def test_hybrid_fuses_both_rankings(searcher):
    vector = searcher.search("Die Katze", top=15).hits
    words = searcher.search("Die Katze", top=15, mode="text").hits
    assert searcher.search("Die Katze", top=3, mode="hybrid").hits == fused([vector, words], 3)


@pytest.mark.parametrize("options", [{"mode": "vektor"}, {"top": 0}, {"per_language": 0}, {"top": 10**6}])
def test_options_out_of_range_are_refused(searcher, options):
    with pytest.raises(ConfigError):
        searcher.search("Die Katze", **options)


def test_passages_are_added_replaced_and_deleted(searcher, tmp_path):
    folder = tmp_path / "index"
    records = [{"id": "deu_Latn.txt:1", "text": "Neu.", "language": "de"}, {"id": "new", "text": "Un.", "lang": "fr"}]
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert add_to_index(folder, [tmp_path / "more.jsonl"]) == Added(1, 1, 0)
    assert PassageIndex(folder).languages() == {"deu_Latn": 20, "eng_Latn": 20, "tha_Thai": 20, "fra_Latn": 1}
    assert delete_from_index(folder, ["new"]) == 1
    assert delete_from_index(folder, where="language = 'deu_Latn'") == 20


def test_a_map_goes_with_the_index(model, files, tmp_path):
    vectors = Encoder.load(model).encode(SENTENCES)
    made = fit_language_map(language_statistics([("deu_Latn", vectors[:4]), ("eng_Latn", vectors[4:])]))
    write_map(made, tmp_path / "language_map.safetensors")
    build_index(model, files, tmp_path / "index", language_map=tmp_path)
    (tmp_path / "language_map.safetensors").unlink()
    index = PassageIndex(tmp_path / "index")
    hit = Searcher(index, model_of(index)).search(files[0].read_text().splitlines()[0], top=1).hits[0]
    assert hit.score == pytest.approx(1, abs=1e-5)
    with pytest.raises(ConfigError, match="language map"):
        build_index(model, files, tmp_path / "index")
    other = fit_language_map(language_statistics([("deu_Latn", vectors[:3]), ("eng_Latn", vectors[3:])]))
    write_map(other, tmp_path / "language_map.safetensors")
    with pytest.raises(ConfigError, match="language map"):
        build_index(model, files, tmp_path / "index", language_map=tmp_path)


def test_a_model_that_moved_can_be_named(searcher, model, tmp_path):
    index = PassageIndex(tmp_path / "index")
    record = json.loads((tmp_path / "index" / "index.json").read_text())
    (tmp_path / "index" / "index.json").write_text(json.dumps({**record, "model": str(tmp_path / "gone")}))
    index = PassageIndex(tmp_path / "index")
    with pytest.raises(CheckpointError, match="gone"):
        model_of(index)
    assert model_of(index, model=model).settings.digest == record["digest"]


@pytest.mark.parametrize("files", [[], ["nothing.txt"], ["."]])
def test_files_are_checked_before_the_model_is_read(files, tmp_path):
    with pytest.raises((ConfigError, DataError)):
        build_index("no such model", files, tmp_path / "index")
    assert not (tmp_path / "index").exists()


KILLED = """
import sys
from interlingua.search import passage_index
passage_index.COMMIT_PASSAGES = 4
from interlingua.search.searcher import build_index
build_index(sys.argv[1], sys.argv[3:], sys.argv[2], progress=lambda done: print(done, flush=True))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", range(1, 11))
def test_kill_9_loses_no_reported_row(model, files, tmp_path, kill_at):
    command = [sys.executable, "-c", KILLED, model, str(tmp_path / "index"), *map(str, files)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    reported = 0
    while reported < 4 * kill_at:
        reported = int(process.stdout.readline())
    time.sleep(0.002 * kill_at)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    kept = PassageIndex(tmp_path / "index").count()
    assert kept >= reported
    added = build_index(model, files, tmp_path / "index")
    assert (added.added, added.replaced, added.unchanged) == (60 - kept, 0, kept)
    assert PassageIndex(tmp_path / "index").count() == 60
