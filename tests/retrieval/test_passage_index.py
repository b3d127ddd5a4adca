"""The index on disk: exact search, filters, replacement, resuming, and what is refused."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.retrieval import passage_index
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import Added, IndexSettings, PassageIndex
from interlingua.storage.arrays import unit_rows

pytest.importorskip("lancedb")
WIDTH = 8
SETTINGS = IndexSettings(model="somewhere", digest="d1", dim=WIDTH, passage_prompt="p: ")


def embed(passages):
    """Return a unit vector that depends only on the text."""
    seeds = [list(passage.text.encode()) for passage in passages]
    rows = [np.random.default_rng(seed).standard_normal(WIDTH) for seed in seeds]
    return unit_rows(np.array(rows))


def invented(count, *, first=0):
    languages = ("deu_Latn", "eng_Latn", "tha_Thai")
    return [
        Passage(f"p{n}", f"text number {n}", "", languages[n % 3], f'{{"year": {2000 + n % 5}}}')
        for n in range(first, first + count)
    ]


@pytest.fixture
def empty(tmp_path):
    return PassageIndex.create(tmp_path / "index", SETTINGS)


@pytest.fixture
def index(empty):
    empty.add(invented(60), embed)
    empty.finish()
    return empty


def test_nearest_is_the_exact_order_of_cosines(index):
    passages = invented(60)
    vectors = embed(passages)
    question = embed([Passage("q", "a question")])[0]
    cosines = vectors @ question
    expected = [passages[row].id for row in np.argsort(-cosines)[:7]]
    found = index.nearest(question, 7)
    assert [hit.id for hit in found] == expected
    largest = sorted(cosines, reverse=True)[:7]
    assert [hit.score for hit in found] == pytest.approx(largest, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "keeps"),
    [
        ({"languages": ["tha_Thai"]}, lambda n: n % 3 == 2),
        ({"where": "json_get_int(metadata, 'year') = 2003"}, lambda n: n % 5 == 3),
        ({"where": "(id <> ');--' AND id <> '''(')"}, lambda n: True),
        (
            {"languages": ["deu_Latn", "eng_Latn"], "where": "id <> 'p0' OR id = 'p1'"},
            lambda n: n % 3 < 2 and n,
        ),
    ],
)
def test_a_filter_leaves_all_that_meets_it(index, options, keeps):
    found = index.nearest(embed([Passage("q", "a question")])[0], 60, **options)
    assert {hit.id for hit in found} == {f"p{n}" for n in range(60) if keeps(n)}


def test_words_are_found_in_scripts_without_spaces(empty):
    texts = {"zh": "东京是日本的首都", "th": "กรุงเทพเป็นเมืองหลวง", "de": "Die Hauptstadt"}
    empty.add([Passage(*one) for one in texts.items()], embed)
    empty.finish()
    for word, found in (("首都", "zh"), ("เมืองหลวง", "th"), ("HAUPTSTADT", "de")):
        assert [hit.id for hit in empty.matching(word, 3)] == [found]
    assert empty.matching("capital", 3) == []


def test_an_approximate_index_finds_nearly_the_same(empty, monkeypatch):
    monkeypatch.setattr(passage_index, "LEAST_APPROXIMATE", 2000)
    index = empty
    index.add(invented(2000), embed)
    index.finish(approximate=True)
    assert index.is_approximate
    questions = embed([Passage("q", f"question {n}") for n in range(20)])
    shared = 0
    for question in questions:
        exact, found = (
            {hit.id: hit.score for hit in index.nearest(question, 10, exact=exact)}
            for exact in (True, False)
        )
        both = exact.keys() & found.keys()
        assert [found[name] for name in both] == pytest.approx(
            [exact[name] for name in both], abs=1e-5
        )
        shared += len(both)
    assert shared >= 120  # of 200; the cells are drawn at random, and codes of one byte are coarse
    index.add(invented(5, first=2000), embed)
    index.finish()
    assert index.nearest(embed(invented(1, first=2003))[0], 1)[0].id == "p2003"


def test_too_few_passages_for_an_approximate_index(index):
    with pytest.raises(ConfigError, match="at least 5,000 passages"):
        index.finish(approximate=True)
    assert not index.is_approximate


def test_an_empty_index_finds_nothing(empty):
    empty.finish()
    assert empty.nearest(np.ones(WIDTH, np.float32), 3) == []
    assert empty.matching("word", 3) == []
    assert empty.languages() == {}


def test_same_changed_and_new_passages_are_counted(index):
    same, changed = invented(2)
    changed = changed._replace(text="another")
    [new] = invented(1, first=60)
    assert index.add([same, changed, new], embed) == Added(added=1, replaced=1, unchanged=1)
    assert index.count() == 61
    (found,) = index.nearest(embed([changed])[0], 1)
    assert (found.id, found.text) == ("p1", "another")
    assert found.score == pytest.approx(1, abs=1e-6)


def test_unchanged_passages_are_not_embedded_again(index):
    def refuse(passages):
        raise AssertionError(passages)

    assert index.add(invented(60), refuse) == Added(0, 0, 60)


@pytest.mark.parametrize("commits", range(5))
def test_what_was_committed_before_a_failure_stays(empty, monkeypatch, commits):
    monkeypatch.setattr(passage_index, "COMMIT_PASSAGES", 10)
    done = []

    def fail(passages):
        if len(done) == commits:
            raise KeyboardInterrupt
        done.append(len(passages))
        return embed(passages)

    with pytest.raises(KeyboardInterrupt):
        empty.add(invented(60), fail)
    again = PassageIndex(empty.folder)
    assert again.count() == 10 * commits
    assert again.add(invented(60), embed) == Added(60 - 10 * commits, 0, 10 * commits)
    assert again.count() == 60


def test_passages_are_deleted_by_id_and_condition(index):
    assert index.delete(["p0", "p1", "nothing", "it's"]) == 2
    assert index.delete(where="language = 'tha_Thai'") == 20
    assert index.languages() == {"deu_Latn": 19, "eng_Latn": 19}


def test_an_id_that_occurs_twice_is_refused(index, monkeypatch):
    monkeypatch.setattr(passage_index, "COMMIT_PASSAGES", 2)
    given = [Passage(name, name) for name in ("x", "y", "a", "b", "a")]
    with pytest.raises(DataError, match=r"'a' occurs twice; .* 4 passages"):
        index.add(given, embed)
    assert index.count() == 60 + 4


def lines(file, *texts):
    numbered = [(number, text) for number, text in enumerate(texts, 1) if text]
    return [Passage(f"{file}:{number}", text, file=file) for number, text in numbered]


def ids(index):
    return {row["id"] for row in index._table.search().select(["id"]).to_list()}


def test_a_file_replaces_its_earlier_state_as_a_whole(index):
    owned = [Passage("r1", "one"), *lines("b.jsonl", "", "two")]
    before = ids(index)
    given = [*lines("it's.txt", "one", "two", "three"), *owned]
    assert index.add(given, embed, files=["it's.txt", "b.jsonl"]) == Added(5, 0, 0)
    shorter = lines("it's.txt", "one", "other")
    assert index.add(shorter, embed, files=["it's.txt"]) == Added(0, 1, 1, deleted=1)
    assert ids(index) == before | {"it's.txt:1", "it's.txt:2", "r1", "b.jsonl:2"}
    (hit,) = index.nearest(embed(shorter[1:])[0], 1)
    assert (hit.id, hit.text, hit.score) == ("it's.txt:2", "other", pytest.approx(1, abs=1e-6))
    # a record with an id of its own stays without its file; a passage without one does not
    assert index.add([Passage("r2", "two")], embed, files=["b.jsonl"]) == Added(1, 0, 0, deleted=1)
    assert ids(index) == before | {"it's.txt:1", "it's.txt:2", "r1", "r2"}
    assert index.delete(where="file = 'it''s.txt'") == 2


def test_a_failed_run_deletes_nothing_of_a_file(index):
    index.add(lines("a.txt", "one", "two"), embed, files=["a.txt"])

    def fail(passages):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.add(lines("a.txt", "other"), fail, files=["a.txt"])
    assert {"a.txt:1", "a.txt:2"} <= ids(index)


@pytest.mark.parametrize(
    "where",
    [
        "nonsense =",
        "color = 'red'",
        "1 = 1); DROP",
        "1 = 1) OR (1 = 1",
        "(id = 'p0'",
        "id = 'p0'; id = 'p1'",
        "1 = 1 -- id = 'p0'",
        "1 = 1 /* all */",
    ],
)
def test_a_condition_that_is_not_valid_is_refused(index, where):
    for search in (
        lambda: index.nearest(np.ones(WIDTH, np.float32), 1, where=where),
        lambda: index.delete(where=where),
        lambda: index.delete(["p0"], where=where),
    ):
        with pytest.raises(ConfigError, match="--where"):
            search()
    assert index.count() == 60


@pytest.mark.parametrize("given", [{"ids": ["p0"]}, {"where": "id = 'p0'"}])
def test_a_delete_that_a_full_disk_stops_is_not_the_conditions_fault(index, given):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # writing beyond 10 bytes fails, as on a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(DataError) as caught:
            index.delete(**given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "cannot be written" in str(caught.value)
    assert "--where" not in str(caught.value)
    assert PassageIndex(index.folder).count() == 60
    assert index.delete(**given) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("digest", "d2"),
        ("dim", 9),
        ("passage_prompt", ""),
        ("question_prompt", "q"),
        ("map_digest", "m"),
    ],
)
def test_another_model_or_prompt_is_refused(index, name, value):
    with pytest.raises(ConfigError, match="another value"):
        PassageIndex.create(index.folder, replace(SETTINGS, **{name: value}))
    assert PassageIndex.create(index.folder, replace(SETTINGS, model="moved")).count() == 60


def test_a_folder_of_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for place in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ConfigError, match="another folder"):
            PassageIndex.create(place, SETTINGS)
    with pytest.raises(ConfigError, match="no index"):
        PassageIndex(tmp_path / "nothing")


@pytest.mark.parametrize("content", ['{"format": "interlingua-passage-index-9"}', "[]", "{"])
def test_damaged_settings_are_one_line(index, content):
    (index.folder / "index.json").write_text(content)
    with pytest.raises((CheckpointError, DataError), match=r"index\.json"):
        PassageIndex(index.folder)


@pytest.mark.parametrize("damage", ["*.manifest", "data/*", "_indices/*/*", ""])
def test_damaged_passages_are_one_line(index, damage):
    table = index.folder / "passages.lance"
    if not damage:
        shutil.rmtree(table)
    for path in table.rglob(damage) if damage else ():
        path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(CheckpointError, match="build the index"):
        PassageIndex(index.folder).matching("number", 3)


def test_a_build_goes_on_where_no_table_was_made_yet(empty):
    folder = empty.folder
    shutil.rmtree(folder / "passages.lance" / "_versions")  # as after kill -9 in the first write
    with pytest.raises(CheckpointError, match="passages are missing"):
        PassageIndex(folder)
    index = PassageIndex.create(folder, SETTINGS)
    assert index.add(invented(3), embed) == Added(3, 0, 0)
    assert PassageIndex(folder).count() == 3


@pytest.mark.parametrize("where", [None, "language = 'deu_Latn'"])
def test_words_are_not_searched_before_the_build_ended(empty, where):
    empty.add(invented(3), embed)
    with pytest.raises(CheckpointError, match="index build` again"):
        empty.matching("number", 3, where=where)
    assert len(empty.nearest(embed(invented(1))[0], 3)) == 3
    empty.finish()
    assert empty.matching("number", 3)


NOISY = """
import sys
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex
PassageIndex.create(sys.argv[1], IndexSettings(model="m", digest="d", dim=8))
import lancedb, pyarrow
schema = pyarrow.schema([("a", pyarrow.int64())])
# of which LanceDB warns
lancedb.connect(sys.argv[1]).create_table("new", schema=schema, mode="overwrite")
"""


def test_warnings_of_lancedb_are_not_shown(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "LANCEDB_LOG"}
    command = [sys.executable, "-c", NOISY, str(tmp_path / "index")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_second_writer_is_refused(index):
    with (
        index.writing(),
        pytest.raises(ConfigError, match="wait until"),
        PassageIndex(index.folder).writing(),
    ):
        pass


def damage(index, column, value):
    """Change a stored value without the checksum."""
    index._table.update(where="id = 'p1'", values={column: value})


@pytest.mark.parametrize(
    ("column", "value"),
    [("text", "another"), ("title", "t"), ("language", "fra_Latn"), ("vector", [1.0] + [0.0] * 7)],
)
def test_a_row_that_changed_on_the_disk_is_refused_until_it_is_added_again(index, column, value):
    damage(index, column, value)
    question = embed(invented(2))[1]
    with pytest.raises(CheckpointError, match="'p1'"):
        PassageIndex(index.folder).nearest(question, 60)
    assert index.add(invented(60), embed) == Added(0, 1, 59)
    assert PassageIndex(index.folder).nearest(question, 1)[0].id == "p1"


def test_damaged_rows_of_other_files_are_counted(index, caplog):
    damage(index, "text", "another")
    assert index.add(invented(1), embed) == Added(0, 0, 1)
    assert "1 rows of other files are damaged" in caplog.text


@pytest.mark.parametrize("content", ["{}", '{"a": -0.0, "b": [1e5, 12345678901234567890123, 0.1]}'])
def test_metadata_in_another_form_is_no_damage(empty, content):
    passage = Passage("a", "one", metadata=content)
    empty.add([passage], embed)
    assert PassageIndex(empty.folder).nearest(embed([passage])[0], 1)[0].id == "a"
    assert empty.add([passage], embed) == Added(0, 0, 1)
