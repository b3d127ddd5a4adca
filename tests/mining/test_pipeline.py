from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining.candidates import best_both_ways, retrieve
from interlingua.mining.documents import DocumentMatch
from interlingua.mining.pipeline import MineConfig, TextFile, mine_files
from interlingua.runtime import Steps
from interlingua.search.topk.approximate import Approximate
from interlingua.search.topk.exact import mutual_topk
from tests.mining.invented import corpora, embed, write_lines

ROOT = Path(__file__).resolve().parents[2]
SMALL = 2**21
"""Memory that makes several tiles of a few thousand texts."""


def sides(folder, shared=30, alone=40, **options):
    sources, targets, pairs = corpora(shared, alone)
    files = [
        write_lines(folder / name, texts) for name, texts in (("a.de", sources), ("a.en", targets))
    ]
    made = [
        TextFile(path, code, encode=embed, **options)
        for path, code in zip(files, ("deu_Latn", "eng_Latn"), strict=True)
    ]
    return (*made, pairs)


def as_pairs(mined):
    return list(zip(mined.pairs["x"].tolist(), mined.pairs["y"].tolist(), strict=True))


@pytest.mark.parametrize("retrieval", ["max", "intersection", "forward", "backward"])
@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
def test_files_give_what_vectors_in_memory_give(tmp_path, retrieval, margin):
    source, target, _ = sides(tmp_path)
    config = MineConfig(retrieval=retrieval, margin=margin, k=3)
    mined = mine_files(source, target, config, tmp_path / "work", model="m")
    x, y = embed(list(mined.x.texts)), embed(list(mined.y.texts))
    found = retrieve(*best_both_ways(x, y, k=3, margin=margin), retrieval)
    order = np.argsort(-found.scores, kind="stable")
    assert as_pairs(mined) == list(
        zip(found.x[order].tolist(), found.y[order].tolist(), strict=True)
    )
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
    mined = mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
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
    mined = mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
    assert len(mined.x) == 70
    assert mined.x.origins(one) == [str(one + 1), "72"]
    assert "72 lines, 70 texts, 1 blank lines left out" in mined.notes[0]
    assert (one, other) in as_pairs(mined)


def laser(x, y, k, margin, retrieval, threshold):
    """LASER's mine_bitexts.py, mode mine, written anew: exact search in float32, margins pair by
    pair."""
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    cosines = x @ y.T
    functions = {
        "ratio": lambda a, b: a / b,
        "distance": lambda a, b: a - b,
        "absolute": lambda a, b: a,
    }
    near_x, near_y = np.argsort(-cosines, axis=1)[:, :k], np.argsort(-cosines.T, axis=1)[:, :k]
    mean_x = np.take_along_axis(cosines, near_x, 1).mean(axis=1)
    mean_y = np.take_along_axis(cosines.T, near_y, 1).mean(axis=1)

    def scores(i, j):
        return functions[margin](x[i] @ y[j], (mean_x[i] + mean_y[j]) / 2)

    forward = [max((scores(i, j), j) for j in near_x[i]) for i in range(len(x))]
    backward = [max((scores(i, j), i) for i in near_y[j]) for j in range(len(y))]
    if retrieval == "forward":
        return [(score, i, j) for i, (score, j) in enumerate(forward)]
    if retrieval == "backward":
        return [(score, i, j) for j, (score, i) in enumerate(backward)]
    if retrieval == "intersection":
        return [(score, i, j) for i, (score, j) in enumerate(forward) if backward[j][1] == i]
    every = [(s, i, j) for i, (s, j) in enumerate(forward)] + [
        (s, i, j) for j, (s, i) in enumerate(backward)
    ]
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
    """Its order, unique lines with the last one's vector, blank lines kept, vectors that are not of
    length 1."""
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
    config = MineConfig(retrieval=retrieval, margin=margin, like_laser=True)
    mined = mine_files(*files, config, tmp_path / "work", model="m")
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
    expected = mine_files(source, target, MineConfig(), tmp_path / "one", model="m")
    known = []
    for name, file in (("x", source), ("y", target)):
        np.save(tmp_path / f"{name}.npy", 3 * embed(file.path.read_text().splitlines()))
        known.append(file._replace(encode=None, vectors=[tmp_path / f"{name}.npy"]))
    found = mine_files(*known, MineConfig(), tmp_path / "two", model="m")
    assert as_pairs(found) == as_pairs(expected)
    np.testing.assert_allclose(found.pairs["score"], expected.pairs["score"], rtol=1e-5)
    with pytest.raises(DataError, match=r"70 rows .*shape \(5, 24\)"):
        np.save(tmp_path / "x.npy", np.zeros((5, 24), np.float32))
        mine_files(*known, MineConfig(), tmp_path / "three", model="m")


def test_shards_on_several_machines_join(tmp_path, monkeypatch):
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 20)
    source, target, _ = sides(tmp_path)
    expected = mine_files(source, target, MineConfig(), tmp_path / "one", model="m")
    work = tmp_path / "work"
    for number in (1, 2, 3):  # the last one finds all vectors
        assert mine_files(source, target, MineConfig(), work, model="m", shard=(number, 3)) is None
    assert [path.name for path in work.glob("neighbors-k4/*of*")] == ["3of3"]
    for number in (1, 2):
        assert mine_files(source, target, MineConfig(), work, model="m", shard=(number, 3)) is None
    joined = mine_files(source, target, MineConfig(), work, model="m")
    assert joined.pairs.tobytes() == expected.pairs.tobytes()
    with pytest.raises(ConfigError, match=r"documents .*in shards"):
        config = MineConfig(documents=DocumentMatch.parse("equal"))
        mine_files(source, target, config, work, model="m", shard=(1, 2))


@pytest.mark.parametrize("known", [False, True])
def test_the_time_left_is_known_once_the_model_s_speed_is(tmp_path, monkeypatch, known):
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 20)
    monkeypatch.setattr("interlingua.search.topk.speed.TRIED_VECTORS", 256)
    source, target, _ = sides(tmp_path)
    if known:
        np.save(tmp_path / "x.npy", embed(source.path.read_text().splitlines()))
        source = source._replace(vectors=[tmp_path / "x.npy"])
    told = []
    mine_files(
        source,
        target,
        MineConfig(),
        tmp_path / "work",
        model="m",
        progress=Steps(lambda *at: told.append(at)),
    )
    left = [(what, seconds) for what, _, _, seconds in told]
    first = next(number for number, (what, _) in enumerate(left) if what.startswith("embedding"))
    assert [seconds for what, seconds in left if what.startswith("reading")] == [None] * first
    assert left[first][1] is None
    assert all(seconds is not None for _, seconds in left[first + 1 :])
    assert [what for what, _ in left[first + 1 :]][-2:] == ["nearest neighbors", "choosing pairs"]
    mine_files(
        source,
        target,
        MineConfig(),
        tmp_path / "work",
        model="m",
        progress=Steps(lambda *at: told.append(at)),
    )


def test_a_search_goes_on_as_it_was_cut_whatever_memory_the_next_run_has(tmp_path):
    source, target, _ = sides(tmp_path, 300, 1500)
    expected = mine_files(source, target, MineConfig(memory=SMALL), tmp_path / "work", model="m")
    pairs = expected.pairs.tobytes()
    before = (tmp_path / "work" / "neighbors-k4" / "plan.json").read_text()
    again = mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
    assert again.pairs.tobytes() == pairs
    assert (tmp_path / "work" / "neighbors-k4" / "plan.json").read_text() == before


def test_an_approximate_search_tells_its_recall_and_is_kept_apart(tmp_path):
    pytest.importorskip("faiss")
    source, target, _ = sides(tmp_path, 100, 200)
    exactly = mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
    config = MineConfig(approximate=Approximate("ivf", 99))
    found = mine_files(source, target, config, tmp_path / "work", model="m")
    assert found.pairs.tobytes() == exactly.pairs.tobytes()
    assert found.notes[2].startswith(
        "approximate neighbors (ivf:99): recall@4 1.0000 of source and 1.0000 of target"
    )
    assert (tmp_path / "work" / "neighbors-k4-ivf-99").is_dir()
    with pytest.raises(ConfigError, match="an approximate search"):
        mine_files(source, target, config, tmp_path / "work", model="m", shard=(1, 2))


def test_another_run_is_refused(tmp_path):
    source, target, _ = sides(tmp_path)
    mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
    with pytest.raises(ConfigError, match="another model, prompt"):
        mine_files(source, target, MineConfig(), tmp_path / "work", model="other")
    with pytest.raises(ConfigError, match="texts or settings"):
        mine_files(source, target, MineConfig(equal="folded"), tmp_path / "work", model="m")
    again = mine_files(source, target, MineConfig(k=2), tmp_path / "work", model="m")
    assert len(again.pairs)


def given(tmp_path):
    """Both sides with vectors in files, and the file of the target's."""
    source, target, _ = sides(tmp_path)
    for name, file in (("x", source), ("y", target)):
        np.save(tmp_path / f"{name}.npy", embed(file.path.read_text().splitlines()))
    paths = [tmp_path / f"{name}.npy" for name in "xy"]
    return *(
        file._replace(vectors=[path]) for file, path in zip((source, target), paths, strict=True)
    ), paths[1]


@pytest.mark.parametrize("steps", [False, True])
def test_a_file_of_vectors_that_is_mended_is_taken(tmp_path, monkeypatch, steps):
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 20)
    monkeypatch.setattr("interlingua.search.topk.speed.TRIED_VECTORS", 256)
    source, target, path = given(tmp_path)
    good = np.load(path)
    np.save(path, np.where(np.arange(70)[:, None] == 60, np.nan, good))
    options = {"progress": Steps(lambda *_: None)} if steps else {}
    with pytest.raises(DataError, match=r"y\.npy: row 60 .*NaN"):
        mine_files(source, target, MineConfig(), tmp_path / "work", model="m", **options)
    np.save(path, good)
    assert len(
        mine_files(source, target, MineConfig(), tmp_path / "work", model="m", **options).pairs
    )
    np.save(path, 2 * good)
    with pytest.raises(ConfigError, match="another --work folder"):
        mine_files(source, target, MineConfig(), tmp_path / "work", model="m", **options)


def test_texts_that_are_mended_are_taken(tmp_path):
    source, target, _ = given(tmp_path)
    lines = target.path.read_text().splitlines()
    write_lines(target.path, lines[:-1])
    with pytest.raises(DataError, match="expected 69 rows"):
        mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
    write_lines(target.path, lines)
    mined = mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
    assert len(mined.y) == 70
    write_lines(target.path, lines[::-1])
    with pytest.raises(ConfigError, match="texts or settings"):
        mine_files(source, target, MineConfig(), tmp_path / "work", model="m")


@pytest.mark.parametrize("steps", [False, True])
def test_vectors_of_two_widths_are_told_with_their_files(tmp_path, monkeypatch, steps):
    monkeypatch.setattr("interlingua.search.topk.speed.TRIED_VECTORS", 256)
    source, target, path = given(tmp_path)
    np.save(path, np.ones((70, 5)))
    options = {"progress": Steps(lambda *_: None)} if steps else {}
    message = r"one width, got 24 of \S+a\.de and 5 of \S+y\.npy"
    with pytest.raises(DataError, match=message):
        mine_files(
            source._replace(vectors=()),
            target,
            MineConfig(),
            tmp_path / "work",
            model="m",
            **options,
        )


def test_vectors_of_zeros_are_told(tmp_path):
    source, target, path = given(tmp_path)
    table = np.load(path)
    table[[3, 5]] = 0
    np.save(path, table)
    mined = mine_files(source, target, MineConfig(), tmp_path / "work", model="m")
    assert [note for note in mined.notes if note.startswith("warning")] == [
        f"warning: {path}: 2 texts have a vector of zeros, near to no other; embed them again"
    ]


def test_what_has_no_vector_is_named(tmp_path):
    source, target, _ = sides(tmp_path)
    with pytest.raises(DataError, match="no vector of"):
        mine_files(source._replace(encode=None), target, MineConfig(), tmp_path / "work", model="m")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": "ratios"}, "margin 'ratios' .*ratio, distance, absolute"),
        ({"retrieval": "fwd"}, "retrieval 'fwd' is unknown"),
        ({"equal": "yes"}, "equal 'yes' is unknown"),
        ({"k": 0}, "k = 0"),
        ({"like_laser": True, "documents": DocumentMatch(how="equal")}, "knows no documents"),
        (
            {"approximate": Approximate("ivf", 1), "documents": DocumentMatch(how="equal")},
            "exact, and short",
        ),
    ],
)
def test_unknown_ways_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        MineConfig(**options)


KILLED = """
import os, signal, sys
from pathlib import Path
from interlingua.mining import candidates, vectors
from interlingua.search.topk import tiles
from tests.mining.test_pipeline import MineConfig, SMALL, mine_files, sides

folder, place, moment = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
vectors.PORTION, calls = 200, []

def dying(function):
    def call(*arguments, **options):
        calls.append(1)
        if len(calls) == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call

if place == "vectors":
    vectors._write = dying(vectors._write)
elif place == "tiles":
    tiles.write_lists = dying(tiles.write_lists)
elif place == "pairs":
    candidates.OneToOneMatcher.accept = dying(candidates.OneToOneMatcher.accept)
source, target, _ = sides(folder, 300, 1500)
mined = mine_files(source, target, MineConfig(memory=SMALL), folder / "work", model="m")
(folder / "pairs").write_bytes(mined.pairs.tobytes())
"""


def test_a_run_killed_at_three_points_ends_with_the_same_bytes(tmp_path):
    """In the middle of the vectors, of the tiles and of the pairs."""
    for folder, deaths in (
        ("killed", [("vectors", 5), ("tiles", 4), ("pairs", 1)]),
        ("straight", []),
    ):
        (tmp_path / folder).mkdir()
        for place, moment in [*deaths, ("nowhere", 0)]:
            command = [sys.executable, "-c", KILLED, str(tmp_path / folder), place, str(moment)]
            ran = subprocess.run(
                command, check=False, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}
            )
            assert ran.returncode == (0 if place == "nowhere" else -signal.SIGKILL), place
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    assert (killed / "pairs").read_bytes() == (straight / "pairs").read_bytes()
    assert len((straight / "pairs").read_bytes()) > 1000
    assert (killed / "work" / "x" / "vectors.npy").read_bytes() == (
        straight / "work" / "x" / "vectors.npy"
    ).read_bytes()
    tiles = list((straight / "work" / "neighbors-k4").glob("*.npz"))
    assert len(tiles) > 2
    for path in tiles:
        assert (killed / "work" / "neighbors-k4" / path.name).read_bytes() == path.read_bytes()


def test_documents_that_do_not_match_are_told_before_the_work_and_leave_the_way_free(tmp_path):
    """The remedy is another way to match them, with the same output and so the same work folder."""
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
        mine_files(
            source,
            target,
            MineConfig(documents=DocumentMatch.parse("equal")),
            tmp_path / "work",
            model="m",
        )
    source, target = (file._replace(encode=embed) for file in (source, target))
    config = MineConfig(documents=DocumentMatch.parse("urls"))
    assert sorted(as_pairs(mine_files(source, target, config, tmp_path / "work", model="m"))) == [
        (0, 0),
        (1, 1),
    ]
