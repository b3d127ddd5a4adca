"""An index is measured as it is: modes, pools, filters, and questions of several languages."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest
import torch

import interlingua
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.tasks.retrieval.index_search import IndexSearch, _ranked_names
from interlingua.retrieval.chunks import ChunkSettings
from interlingua.retrieval.passage_index import PassageIndex
from interlingua.retrieval.ranking import Hit
from interlingua.retrieval.searcher import Searcher, build_index, load_index_model
from tests.encoder.conftest import tiny_vocabulary

pytest.importorskip("lancedb")
pytest.importorskip("ir_measures")
PASSAGES = [
    ("a", "Die Katze sitzt auf dem Dach.", "de"),
    ("b", "The cat sits on the roof.", "en"),
    ("c", "The dog sleeps in the garden.", "en"),
    ("d", "Der Hund schläft im Garten.", "de"),
    ("copy", "The dog sleeps in the garden.", "en"),
]
QUESTIONS = [("q1", "Wo sitzt die Katze?", "de"), ("q2", "Where does the dog sleep?", "en")]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    torch.manual_seed(0)
    vocabulary = tiny_vocabulary(frame=True)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    folder = tmp_path_factory.mktemp("measured")
    Encoder.from_scratch(config, vocabulary).save(folder / "tiny")
    lines = [
        json.dumps({"id": name, "text": text, "language": language, "kind": "animal"})
        for name, text, language in PASSAGES
    ]
    (folder / "passages.jsonl").write_text("\n".join(lines), encoding="utf-8")
    build_index(str(folder / "tiny"), [folder / "passages.jsonl"], folder / "index")
    return folder / "index"


def write_questions(folder, *, named=True, relevant="q1 a 1\nq1 b 1\nq2 copy 2\nq2 d 1\n"):
    (folder / "qrels").mkdir(parents=True)
    lines = []
    for name, text, language in QUESTIONS:
        record = {"_id": name, "text": text}
        lines.append(json.dumps(record | ({"language": language} if named else {})))
    (folder / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text(relevant.replace(" ", "\t"), encoding="utf-8")
    return folder


def measured(index, data, **options):
    found = interlingua.evaluate(index, data=data, output=None, check=False, **options)
    return found[0]


def test_questions_of_two_languages_are_scored_by_language(index, tmp_path):
    result = measured(index, write_questions(tmp_path / "q"))
    assert [subset.languages for subset in result.subsets] == [("deu_Latn",) * 2, ("eng_Latn",) * 2]
    assert set(result.subsets[0].scores) == {
        f"{mode}{metric}"
        for mode in ("", "text_", "hybrid_")
        for metric in ("mrr_at_100", "recall_at_100", "ndcg_at_10")
    }
    assert result.subsets[0].scores["recall_at_100"] == 1.0


def test_scores_are_those_of_the_searches(index, tmp_path):
    result = measured(index, write_questions(tmp_path / "q"))
    searcher = Searcher(PassageIndex(index), load_index_model(PassageIndex(index)))
    for subset, (_, text, _), right in zip(
        result.subsets, QUESTIONS, [{"a", "b"}, {"c", "copy", "d"}], strict=True
    ):
        for mode, prefix in (("vector", ""), ("text", "text_"), ("hybrid", "hybrid_")):
            hits = searcher.search(text, top=100, mode=mode).hits
            ranks = [rank for rank, hit in enumerate(hits, 1) if hit.id in right]
            expected = 1 / ranks[0] if ranks else 0.0
            assert subset.scores[f"{prefix}mrr_at_100"] == pytest.approx(expected)


def test_the_pool_and_a_filter_leave_other_passages_out(index, tmp_path):
    data = write_questions(tmp_path / "q")
    own = measured(index, data, settings=["index.pool=own", "index.modes=[]"])
    assert own.task.endswith("_own")
    assert [subset.scores["recall_at_100"] for subset in own.subsets] == [1.0, 1.0]
    german = measured(index, data, settings=["index.where=language = 'deu_Latn'"])
    assert [subset.scores["recall_at_100"] for subset in german.subsets] == [0.5, 0.5]
    assert german.data_sha256 == own.data_sha256
    none = measured(index, data, settings=["index.where=kind = 'plant'"])
    assert none.main_score == 0.0


def test_own_pool_judges_passages_of_the_questions_language_alone(index, tmp_path, monkeypatch):
    """Rank a German question's right passages 2 of 2, an English one's 1 and 2 of 2."""
    ranked = {"deu_Latn": ["d", "a"], "eng_Latn": ["c", "b"]}

    def rank(self, text, vector, *, languages, **options):
        hits = {hit.id: hit for hit in self.index.nearest(vector, 9, languages=languages)}
        return SimpleNamespace(hits=[hits[name] for name in ranked[languages[0]]])

    monkeypatch.setattr(Searcher, "rank", rank)
    relevant = "q1 a 1\nq1 b 3\nq1 c 1\nq2 b 2\nq2 c 1\nq2 a 3\nq2 gone 3\n"
    data = write_questions(tmp_path / "q", relevant=relevant)
    own = measured(index, data, settings=["index.pool=own", "index.modes=[]"])
    german, english = (subset.scores for subset in own.subsets)
    # One right passage, at rank 2: 1 / log2(3).
    assert german["ndcg_at_10"] == pytest.approx(1 / math.log2(3))
    assert (german["mrr_at_100"], german["recall_at_100"]) == (0.5, 1.0)
    # Grades 1 and 2 at ranks 1 and 2, where 2 and 1 would be best.
    ideal = 2 + 1 / math.log2(3)
    assert english["ndcg_at_10"] == pytest.approx((1 + 2 / math.log2(3)) / ideal)
    assert (english["mrr_at_100"], english["recall_at_100"]) == (1.0, 1.0)
    assert own.notes == ("eng_Latn: missing from the index: 1 relevant passage",)


def test_own_pool_leaves_out_questions_without_an_answer_in_their_language(index, tmp_path):
    data = write_questions(tmp_path / "q", relevant="q1 b 1\nq2 c 1\n")
    options = ["index.pool=own", "index.modes=[]"]
    with pytest.raises(DataError, match=r"deu_Latn.*--languages"):
        measured(index, data, settings=options)
    assert measured(index, data, settings=options, languages="en").subsets[0].pairs == 1
    record = {"_id": "q3", "text": "Wo schläft der Hund?", "language": "de"}
    with (data / "queries.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(record))
    with (data / "qrels" / "test.tsv").open("a", encoding="utf-8") as file:
        file.write("q3\td\t1\n")
    found = measured(index, data, settings=options)
    assert [subset.pairs for subset in found.subsets] == [1, 1]
    assert [note[:11] for note in found.notes] == ["deu_Latn: 1"]


def test_a_language_is_chosen_and_is_that_of_questions_that_name_none(index, tmp_path):
    result = measured(index, write_questions(tmp_path / "q"), languages="en")
    assert [subset.name for subset in result.subsets] == ["eng_Latn"]
    unnamed = write_questions(tmp_path / "u", named=False)
    result = measured(index, unnamed, languages="de")
    assert [(subset.name, subset.pairs) for subset in result.subsets] == [("deu_Latn", 2)]
    with pytest.raises(DataError, match="--languages"):
        measured(index, unnamed)


def test_relevant_passages_that_are_not_there_are_counted(index, tmp_path):
    data = write_questions(tmp_path / "q", relevant="q1 a 1\nq2 gone 1\nq2 c 1\n")
    assert measured(index, data).notes == ("eng_Latn: missing from the index: 1 relevant passage",)


LONG = " ".join(f"The cat of the house number {number} sits on the roof." for number in range(9))


@pytest.fixture(scope="module")
def chunked(index):
    """An index of a record that is cut into chunks, a copy of its text, and a short record."""
    records = [("long", LONG), ("twin", LONG), ("short", "The dog sleeps in the garden.")]
    lines = [json.dumps({"id": name, "text": text, "language": "en"}) for name, text in records]
    folder = index.parent
    (folder / "records.jsonl").write_text("\n".join(lines), encoding="utf-8")
    chunks = ChunkSettings(tokens=32, overlap=0)
    build_index(str(folder / "tiny"), [folder / "records.jsonl"], folder / "chunked", chunks=chunks)
    return folder / "chunked"


@pytest.mark.parametrize("pool", ["all", "own"])
def test_judgments_of_a_cut_record_are_of_its_first_chunk(chunked, tmp_path, pool, monkeypatch):
    data = write_questions(tmp_path / "q", relevant="q2 long 1\nq2 short 1\n")
    names = ["short", "long#2", "long#1", "twin#1", "long#3"]

    def rank(self, text, vector, **options):
        hits = {hit.id: hit for hit in self.index.nearest(vector, 99)}
        assert hits["long#2"].document == "long"
        return SimpleNamespace(hits=[hits[name] for name in names])

    monkeypatch.setattr(Searcher, "rank", rank)
    settings = ["index.modes=[]", f"index.pool={pool}", f"index.runs={tmp_path / 'runs'}"]
    result = measured(chunked, data, settings=settings, languages="en")
    [english] = result.subsets
    assert english.scores["ndcg_at_10"] == pytest.approx(1)
    assert result.notes == ()
    ranked = (tmp_path / "runs" / "index.eng_Latn.vector.trec").read_text("utf-8").splitlines()
    assert [line.split()[2] for line in ranked] == ["short", "long", "twin"]


def test_judged_documents_are_found_by_real_searches(chunked, tmp_path):
    data = write_questions(tmp_path / "q", relevant="q2 twin 1\nq2 short 1\nq2 gone 1\n")
    result = measured(chunked, data, languages="en")
    # The chunks of one of two records with the same text are hidden behind the other's.
    assert result.subsets[0].scores["recall_at_100"] == pytest.approx(2 / 3)
    assert result.notes == ("eng_Latn: missing from the index: 1 relevant passage",)


def hits_of(*names):
    """Make hits of which the part before # is the document."""
    return [
        Hit(name, 1.0, "", "", "eng_Latn", "", document=name.partition("#")[0]) for name in names
    ]


@pytest.mark.parametrize(
    ("judged", "document_of", "ranked"),
    [
        # Chunks are judged: each has a rank of its own.
        ({"long#2": 1}, {}, ["long#3", "short", "long#1", "long#2"]),
        # A document is judged: its first chunk counts, and those of others are documents too.
        ({"short": 1}, {"short": "short"}, ["long", "short"]),
        ({"long": 1}, {f"long#{n}": "long" for n in (1, 2, 3)}, ["long", "short"]),
        # A chunk that is judged as not relevant is still a part of a relevant document.
        (
            {"long": 1, "long#3": 0},
            {f"long#{n}": "long" for n in (1, 2, 3)},
            ["long", "short"],
        ),
    ],
)
def test_names_of_hits_are_those_of_the_judgments(judged, document_of, ranked):
    hits = hits_of("long#3", "short", "long#1", "long#2")
    assert _ranked_names(hits, judged, document_of) == ranked


def test_a_hidden_copy_is_of_its_own_document_alone():
    """Hide a chunk of a file, and a passage whose id only looks like that of a chunk."""
    hit = hits_of("other")[0]._replace(places=("guide.md:120", "page#intro"))
    judged = {"guide.md": 1, "page": 1}
    assert _ranked_names([hit], judged, {"guide.md:120": "guide.md"}) == ["guide.md"]


def test_a_judged_file_of_sections_is_found(index, tmp_path):
    (tmp_path / "guide.en.md").write_text("# Cats\n\nOn the roof.\n\n# Dogs\n\nIn the garden.\n")
    build_index(str(index.parent / "tiny"), [tmp_path / "guide.en.md"], tmp_path / "guide")
    document = next(PassageIndex(tmp_path / "guide").passages()).document
    data = write_questions(tmp_path / "q", relevant=f"q2 {document} 1\n")
    result = measured(tmp_path / "guide", data, languages="en")
    assert result.subsets[0].scores["mrr_at_100"] == 1
    assert result.notes == ()


def test_a_ranking_of_documents_is_as_deep_as_one_of_passages(chunked, tmp_path, monkeypatch):
    """Put 230 chunks of one record before the judged one, so that 200 hits are not enough."""
    tops = []

    def rank(self, text, vector, *, top, **options):
        tops.append(top)
        return SimpleNamespace(hits=hits_of(*[f"twin#{n}" for n in range(230)], "long#1")[:top])

    monkeypatch.setattr(Searcher, "rank", rank)
    data = write_questions(tmp_path / "q", relevant="q2 long 1\n")
    result = measured(chunked, data, settings=["index.modes=[]"], languages="en")
    assert result.subsets[0].scores["mrr_at_100"] == 0.5
    assert tops == [200, 800]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"suite": "xsim"}, "suite"),
        ({"settings": ["index.modes=['words']"]}, "modes"),
        ({"query_prompt": "query: "}, "--query-prompt"),
    ],
)
def test_options_that_do_not_go_with_the_index_are_refused(index, tmp_path, options, match):
    with pytest.raises(ConfigError, match=match):
        measured(index, write_questions(tmp_path / "q"), **options)


def test_an_index_of_another_model_or_none_is_refused(index, tmp_path):
    data = write_questions(tmp_path / "q")
    torch.manual_seed(1)
    vocabulary = tiny_vocabulary(frame=True)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    other = Encoder.from_scratch(config, vocabulary)
    with pytest.raises(ConfigError, match="the model"):
        interlingua.evaluate(other, [IndexSearch(folder=index)], data, output=None, check=False)
    with pytest.raises(ConfigError, match=r"index\.folder"):
        interlingua.evaluate(other, "index", data, output=None, check=False)
