from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining.candidates import best_both_ways, retrieve
from interlingua.mining.pipeline import TextFile
from interlingua.retrieval.topk.exact import mutual_topk
from interlingua.storage.journal import Journal
from tests.mining.invented import embed, write_lines
from tests.mining.two_sides import Search, as_pairs, mine, sides
from tests.mining.unit_vectors import MARGINS
from tests.progress_records import Recorded

SMALL = 2**21
"""Memory that makes several tiles of a few thousand texts."""


@pytest.mark.parametrize("retrieval", ["max", "intersection", "forward", "backward"])
@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_files_give_what_vectors_in_memory_give(tmp_path, retrieval, margin):
    source, target, _ = sides(tmp_path)
    options = {"retrieval": retrieval, "margin": margin, "k": 3}
    mined = mine(source, target, tmp_path / "work", **options)
    x, y = embed(list(mined.x.texts)), embed(list(mined.y.texts))
    found = retrieve(*best_both_ways(x, y, k=3, margin=margin), retrieval)
    order = np.argsort(-found.scores, kind="stable")
    assert mined.pairs["x"].tolist() == found.x[order].tolist()
    assert mined.pairs["y"].tolist() == found.y[order].tolist()
    assert mined.pairs["score"].tolist() == found.scores[order].tolist()
    of_x, of_y = mutual_topk(x, y, k=1)
    near = [
        np.bincount(one.indices[:, 0].numpy(), minlength=size)
        for one, size in ((of_y, len(x)), (of_x, len(y)))
    ]
    assert mined.pairs["hub_x"].tolist() == near[0][mined.pairs["x"]].tolist()
    assert mined.pairs["hub_y"].tolist() == near[1][mined.pairs["y"]].tolist()


def test_translations_are_found_and_come_first(tmp_path):
    source, target, pairs = sides(tmp_path)
    mined = mine(source, target, tmp_path / "work")
    assert set(as_pairs(mined)[: len(pairs)]) == set(pairs)
    assert mined.notes == [
        f"{source.path}: 70 lines, 70 texts",
        f"{target.path}: 70 lines, 70 texts",
    ]


def test_equal_texts_are_one_with_all_their_lines(tmp_path):
    source, target, pairs = sides(tmp_path)
    (one, other) = pairs[0]
    lines = source.path.read_text().splitlines()
    write_lines(source.path, [*lines, "", lines[one]])
    mined = mine(source, target, tmp_path / "work")
    assert len(mined.x) == 70
    assert mined.x.origins(one) == [str(one + 1), "72"]
    assert "72 lines, 70 texts, 1 blank lines left out" in mined.notes[0]
    assert (one, other) in as_pairs(mined)


def laser(x, y, k, margin, retrieval, threshold):
    """Compute LASER's mine_bitexts.py, mode mine: exact search in float32, pair by pair."""
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    cosines = x @ y.T
    near_x, near_y = np.argsort(-cosines, axis=1)[:, :k], np.argsort(-cosines.T, axis=1)[:, :k]
    mean_x = np.take_along_axis(cosines, near_x, 1).mean(axis=1)
    mean_y = np.take_along_axis(cosines.T, near_y, 1).mean(axis=1)

    def scores(i, j):
        return MARGINS[margin](x[i] @ y[j], (mean_x[i] + mean_y[j]) / 2)

    forward = [max((scores(i, j), j) for j in near_x[i]) for i in range(len(x))]
    backward = [max((scores(i, j), i) for i in near_y[j]) for j in range(len(y))]
    if retrieval == "forward":
        return [(score, i, j) for i, (score, j) in enumerate(forward)]
    if retrieval == "backward":
        return [(score, i, j) for j, (score, i) in enumerate(backward)]
    if retrieval == "intersection":
        return [(score, i, j) for i, (score, j) in enumerate(forward) if backward[j][1] == i]
    every = [(s, i, j) for i, (s, j) in enumerate(forward)]
    every += [(s, i, j) for j, (s, i) in enumerate(backward)]
    taken, found = (set(), set()), []
    for score, i, j in sorted(every, key=lambda one: -one[0]):
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            if score > threshold:
                found.append((score, i, j))
    return found


@pytest.mark.parametrize("retrieval", ["max", "intersection", "forward", "backward"])
@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_like_laser_equals_lasers_script_on_the_same_vectors(tmp_path, retrieval, margin):
    """Compare order, unique lines with the last vector, blank lines, and unscaled vectors."""
    source, target, _ = sides(tmp_path)
    lines = source.path.read_text().splitlines()
    write_lines(source.path, [*lines, " spaces ", "", lines[3]])
    rng = np.random.default_rng(0)
    known = [rng.standard_normal((size, 8)).astype(np.float32) for size in (73, 70)]
    np.save(tmp_path / "x.npy", known[0])
    known[1].tofile(tmp_path / "y.raw")
    files = (
        source._replace(vectors=[tmp_path / "x.npy"]),
        target._replace(vectors=[tmp_path / "y.raw"]),
    )
    options = {"retrieval": retrieval, "margin": margin, "laser": True}
    mined = mine(*files, tmp_path / "work", **options)
    assert mined.x.texts[70:] == [" spaces ", ""]
    x = known[0][[72 if row == 3 else row for row in range(72)]]
    threshold = -1.0
    expected = laser(x, known[1], 4, margin, retrieval, threshold)
    assert as_pairs(mined) == [(i, j) for _, i, j in expected]
    np.testing.assert_allclose(
        mined.pairs["score"], [score for score, _, _ in expected], rtol=2e-5, atol=1e-6
    )


def test_known_vectors_take_the_models_place(tmp_path):
    source, target, _ = sides(tmp_path)
    expected = mine(source, target, tmp_path / "one")
    known = [file._replace(encode=None) for file in given(tmp_path, 3)[:2]]
    found = mine(*known, tmp_path / "two")
    assert as_pairs(found) == as_pairs(expected)
    np.testing.assert_allclose(found.pairs["score"], expected.pairs["score"], rtol=1e-5)
    with pytest.raises(DataError, match=r"70 rows .*shape \(5, 24\)"):
        np.save(tmp_path / "x.npy", np.zeros((5, 24), np.float32))
        mine(*known, tmp_path / "three")


def test_shards_on_several_machines_join(tmp_path, monkeypatch):
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 20)
    source, target, _ = sides(tmp_path)
    expected = mine(source, target, tmp_path / "one")
    work = tmp_path / "work"
    for number in (1, 2, 3):  # the last one finds all vectors
        assert mine(source, target, work, shard=(number, 3)) is None
    assert [path.name for path in work.glob("neighbors-k4/*of*")] == ["3of3"]
    for number in (1, 2):
        assert mine(source, target, work, shard=(number, 3)) is None
    joined = mine(source, target, work)
    assert joined.pairs.tobytes() == expected.pairs.tobytes()
    with pytest.raises(ConfigError, match=r"--shard and --documents"):
        mine(source, target, work, shard=(1, 2), documents="equal")


@pytest.mark.parametrize("known", [False, True])
def test_the_time_left_is_known_once_the_model_s_speed_is(tmp_path, monkeypatch, known):
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 20)
    monkeypatch.setattr("interlingua.retrieval.topk.speed.TRIED_VECTORS", 256)
    # Little work is enough for an estimate, and any speed is steady.
    monkeypatch.setattr("interlingua.runtime.progress.LEAST_SECONDS", 0)
    monkeypatch.setattr("interlingua.runtime.progress.LEAST_REPORTS", 3)
    monkeypatch.setattr("interlingua.runtime.progress._LEAST_SHARE", 0)
    monkeypatch.setattr("interlingua.runtime.progress.STEADY", float("inf"))
    source, target, _ = sides(tmp_path)
    if known:
        source = given(tmp_path)[0]
    told = Recorded()
    mine(source, target, tmp_path / "work", progress=told)
    left = told.left
    known = next(number for number, (_, seconds) in enumerate(left) if seconds is not None)
    # The first pieces of the model's work measure its speed.
    assert left[known][0].startswith("embedding")
    assert {what for what, seconds in left if what.startswith("reading") and seconds} == set()
    assert len([what for what, _ in left[:known] if what.startswith("embedding")]) == 3
    assert all(seconds is not None for _, seconds in left[known:])
    assert [what for what, _ in left[known:]][-2:] == ["nearest neighbors", "choosing pairs"]
    mine(source, target, tmp_path / "work", progress=told)


def test_a_search_goes_on_as_it_was_cut_whatever_memory_the_next_run_has(tmp_path):
    source, target, _ = sides(tmp_path, 300, 1500)
    expected = mine(source, target, tmp_path / "work", memory=SMALL)
    pairs = expected.pairs.tobytes()
    journal = Journal(tmp_path / "work" / "neighbors-k4" / "journal.txt")
    before = journal.read()
    again = mine(source, target, tmp_path / "work")
    assert again.pairs.tobytes() == pairs
    assert sorted(map(str, journal.read())) == sorted(map(str, before))


def test_an_approximate_search_tells_its_recall_and_is_kept_apart(tmp_path):
    pytest.importorskip("faiss")
    source, target, _ = sides(tmp_path, 100, 200)
    exactly = mine(source, target, tmp_path / "work")
    config = {"approximate": "ivf:99"}
    found = mine(source, target, tmp_path / "work", **config)
    assert found.pairs.tobytes() == exactly.pairs.tobytes()
    assert found.notes[2].startswith(
        "approximate neighbors (ivf:99): recall@4 1.0000 of source and 1.0000 of target"
    )
    assert (tmp_path / "work" / "neighbors-k4-ivf-99").is_dir()
    with pytest.raises(ConfigError, match=r"--approximate .*--shard"):
        mine(source, target, tmp_path / "work", shard=(1, 2), **config)


def test_another_run_is_refused(tmp_path):
    source, target, _ = sides(tmp_path)
    mine(source, target, tmp_path / "work")
    with pytest.raises(ConfigError, match="another model "):
        mine(source, target, tmp_path / "work", model="other")
    with pytest.raises(ConfigError, match="texts or settings"):
        mine(source, target, tmp_path / "work", equal="folded")
    again = mine(source, target, tmp_path / "work", k=2)
    assert len(again.pairs)


def given(tmp_path, length=1):
    """Write both sides with vectors of a length in files; return them and the target's file."""
    made = []
    for name, file in zip("xy", sides(tmp_path), strict=False):
        path = tmp_path / f"{name}.npy"
        np.save(path, length * embed(file.path.read_text().splitlines()))
        made.append(file._replace(vectors=[path]))
    return *made, path


@pytest.mark.parametrize("steps", [False, True])
def test_a_file_of_vectors_that_is_mended_is_taken(tmp_path, monkeypatch, steps):
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 20)
    monkeypatch.setattr("interlingua.retrieval.topk.speed.TRIED_VECTORS", 256)
    source, target, path = given(tmp_path)
    good = np.load(path)
    np.save(path, np.where(np.arange(70)[:, None] == 60, np.nan, good))
    options = {"progress": Recorded()} if steps else {}
    with pytest.raises(DataError, match=r"y\.npy: row 60 .*NaN"):
        mine(source, target, tmp_path / "work", **options)
    np.save(path, good)
    assert len(mine(source, target, tmp_path / "work", **options).pairs)
    np.save(path, 2 * good)
    with pytest.raises(ConfigError, match="another --work folder"):
        mine(source, target, tmp_path / "work", **options)


def test_texts_that_are_mended_are_taken(tmp_path):
    source, target, _ = given(tmp_path)
    lines = target.path.read_text().splitlines()
    write_lines(target.path, lines[:-1])
    with pytest.raises(DataError, match="expected 69 rows"):
        mine(source, target, tmp_path / "work")
    write_lines(target.path, lines)
    mined = mine(source, target, tmp_path / "work")
    assert len(mined.y) == 70
    write_lines(target.path, lines[::-1])
    with pytest.raises(ConfigError, match="texts or settings"):
        mine(source, target, tmp_path / "work")


@pytest.mark.parametrize("steps", [False, True])
def test_vectors_of_two_widths_are_told_with_their_files(tmp_path, monkeypatch, steps):
    monkeypatch.setattr("interlingua.retrieval.topk.speed.TRIED_VECTORS", 256)
    source, target, path = given(tmp_path)
    np.save(path, np.ones((70, 5)))
    options = {"progress": Recorded()} if steps else {}
    message = r"one width, found 24 of \S+a\.de and 5 of \S+y\.npy"
    with pytest.raises(DataError, match=message):
        mine(source._replace(vectors=()), target, tmp_path / "work", **options)


def test_vectors_of_zeros_are_told(tmp_path):
    source, target, path = given(tmp_path)
    table = np.load(path)
    table[[3, 5]] = 0
    np.save(path, table)
    mined = mine(source, target, tmp_path / "work")
    assert [note for note in mined.notes if note.startswith("warning")] == [
        f"warning: {path}: 2 texts have a vector of zeros, which has no near neighbors; embed them"
        " again"
    ]


def test_what_has_no_vector_is_named(tmp_path):
    source, target, _ = sides(tmp_path)
    with pytest.raises(DataError, match="no vector"):
        mine(source._replace(encode=None), target, tmp_path / "work")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": "ratios"}, "margin 'ratios'.*ratio, distance, absolute"),
        ({"retrieval": "fwd"}, "unknown retrieval 'fwd'"),
        ({"equal": "yes"}, "unknown equal 'yes'"),
        ({"k": 0}, "k: expected"),
        ({"laser": True, "documents": "equal"}, "--laser and --documents"),
        (
            {"approximate": "ivf:1", "documents": "equal"},
            "--approximate and --documents",
        ),
    ],
)
def test_unknown_ways_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Search(**options).check_search()


def test_documents_that_do_not_match_are_told_before_the_work_and_leave_the_way_free(tmp_path):
    """Check the remedy: another match mode with the same output, and so the same work folder."""
    lines = {"de": ["/de/1\tde1 de2", "/de/2\tde3 de4"], "en": ["/en/1\ten1 en2", "/en/2\ten3 en4"]}
    source, target = (
        TextFile(
            write_lines(tmp_path / f"a.{code}", texts),
            language,
            layout="documents",
            encode=lambda *_: pytest.fail("embeds"),
        )
        for (code, texts), language in zip(lines.items(), ("deu_Latn", "eng_Latn"), strict=True)
    )
    with pytest.raises(DataError, match="--documents urls"):
        mine(source, target, tmp_path / "work", documents="equal")
    source, target = (file._replace(encode=embed) for file in (source, target))
    mined = mine(source, target, tmp_path / "work", documents="urls")
    assert sorted(as_pairs(mined)) == [(0, 0), (1, 1)]
