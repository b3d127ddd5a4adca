"""Work shared out on a real cluster of two processes, of which some are killed in the middle."""

from __future__ import annotations

import functools
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from interlingua.cli import main
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError, DataError, InterlinguaError, MissingExtraError
from interlingua.mining.pair_search import PairSearch
from interlingua.runtime.workers import Workers, connected
from tests.jobs import embedded
from tests.mining.cluster import embed_and_die, embed_or_die, kill_one, square_or_fail, two_workers
from tests.mining.test_pipeline import SMALL, sides
from tests.mining.two_sides import mine_files
from tests.progress_records import Recorded

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]


class RefusedError(Exception):
    """Such as Ray's errors are."""


@pytest.fixture(scope="module")
def cluster():
    with two_workers():
        yield


def test_here_is_one_after_the_other():
    here = Workers()
    found = here.run(square_or_fail, ((n, here.share(1)) for n in (3, 13)))
    assert next(found)[0] == 10
    with pytest.raises(DataError, match=r"numbers\.txt:13: thirteen"):
        next(found)
    with connected(None) as nobody:
        assert nobody is None


def test_results_come_in_order_and_tasks_are_taken_as_needed(cluster):
    taken = []
    with connected("auto") as workers:
        one = workers.share(1)
        found = workers.run(square_or_fail, ((taken.append(n) or n + 100, one) for n in range(20)))
        assert next(found) == (10_001, 1)
        assert len(taken) == 2 * workers.slots == 4
        assert [square for square, _ in found] == [(n + 100) ** 2 + 1 for n in range(1, 20)]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (13, r"^numbers.txt:13: thirteen$"),
        (14, r"^.*something .*pip install .*\[extra\]'$"),
        (15, r"after 3 retries \(WorkerCrashedError: .*resume$"),
    ],
)
def test_a_user_s_error_is_one_line(cluster, number, message):
    with connected("auto") as workers, pytest.raises(InterlinguaError, match=message) as error:
        list(workers.run(square_or_fail, [(1,), (number,), (2,)]))
    assert "\n" not in str(error.value)


def test_errors_one_after_the_other_leave_this_process_alive(cluster):
    """Check cancelled tasks. Ray aborts a process if a task is cancelled when it ends."""
    for _ in range(30):
        with connected("auto") as workers, pytest.raises(InterlinguaError, match="thirteen"):
            list(workers.run(square_or_fail, [(1,), (13,), (2,), (3,), (4,)]))
    with connected("auto") as workers:
        assert list(workers.run(square_or_fail, [(5,)])) == [(25, 1)]


def test_a_bug_keeps_its_traceback(cluster):
    with connected("auto") as workers, pytest.raises(KeyError, match="a bug"):
        list(workers.run(square_or_fail, [(16,)]))


def test_more_cores_than_there_are(cluster):
    with pytest.raises(ConfigError, match=r"2 CPU cores, .*3"), connected("auto", cores=3):
        pass


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionError("ray client connection timeout"), "ray client connection timeout"),
        (RefusedError("No token was found.\nTo make one: ..."), "No token was found."),
        (
            ConnectionError(
                "Failure: Traceback (most recent call last):\n  File ...\nRuntimeError: no"
            ),
            "RuntimeError: no",
        ),
        (ValueError(), "ValueError"),
    ],
)
def test_no_cluster_is_one_line_that_tells_of_tokens(monkeypatch, error, reason):
    def init(**_):
        warnings.warn("Is the port open?", UserWarning, stacklevel=2)
        raise error

    ray = SimpleNamespace(
        is_initialized=lambda: False, init=init, exceptions=SimpleNamespace(RayError=RefusedError)
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(ConfigError) as told, connected("ray://there:10001"):
        pass
    assert str(told.value).startswith(
        f"no Ray cluster found at 'ray://there:10001' ({reason}); start one with "
    )
    assert "RAY_AUTH_TOKEN" in str(told.value)


def test_without_ray(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install .*\[ray\]'"),
        connected("local"),
    ):
        pass


def test_mining_with_workers_killed_twice_gives_the_same_bytes(cluster, tmp_path, monkeypatch):
    """Kill one worker in the middle of the vectors, and one in the middle of the tiles."""
    monkeypatch.setattr("interlingua.mining.vectors.PORTION", 200)
    monkeypatch.setattr("interlingua.retrieval.topk.tiles._LEAST", 256)
    source, target, _ = sides(tmp_path, 300, 1500)
    config = PairSearch(memory=SMALL)
    expected = mine_files(source, target, config, tmp_path / "one", model="m")
    word = Path(source.path).read_text().splitlines()[900].split()[0]
    dying = functools.partial(embed_and_die, folder=str(tmp_path), word=word)
    files, killed = [side._replace(encode=dying) for side in (source, target)], []

    class Killing(Recorded):
        def advance(self, count=1):
            super().advance(count)
            is_search = self.label == "nearest neighbors"
            if is_search and 0 < self.done < self.total / 2 and not killed:
                killed.append(kill_one(tmp_path))

    with connected("auto") as workers:
        found = mine_files(
            *files, config, tmp_path / "two", model="m", workers=workers, progress=Killing()
        )
    assert (tmp_path / "died").exists()
    assert killed
    assert killed[0] is not None
    assert found.pairs.tobytes() == expected.pairs.tobytes()
    for side in "xy":
        one, two = (
            (tmp_path / work / f"vectors-{side}" / "vectors.npy").read_bytes()
            for work in ("one", "two")
        )
        assert one == two
    tiles = len((tmp_path / "two" / "neighbors-k4" / "journal.txt").read_text().splitlines())
    assert tiles >= 8
    with (
        connected("auto") as workers,
        pytest.raises(ConfigError, match="--shard and --ray"),
    ):
        mine_files(*files, config, tmp_path / "two", model="m", shard=(1, 2), workers=workers)


@pytest.fixture(scope="module")
def model(tmp_path_factory, word_vocabulary):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    Encoder.from_scratch(
        BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size), word_vocabulary
    ).save(folder)
    return folder


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main.main([str(argument) for argument in arguments])
    return stop.value.code or 0


def test_files_are_embedded_to_the_same_bytes(cluster, model, tmp_path, monkeypatch, capsys):
    """Embed several files by one process and by two: one file is empty, one has a cut line."""
    monkeypatch.setattr("interlingua.encoder.encode.WINDOW_TEXTS", 40)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # as many as a task has
    texts = [[f"de{n} de{n + size} en{n % 7}" for n in range(size)] for size in (130, 0, 41)]
    texts[2][3] = "en1 " * 200
    for number, lines in enumerate(texts):
        (tmp_path / f"part-{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    for folder, options in (("one", ()), ("two", ("--ray", "auto"))):
        assert (
            run("embed", model, f"{tmp_path}/part-*.txt", "-o", f"{tmp_path}/{folder}/", *options)
            == 0
        )
        said = capsys.readouterr().err
        assert f"{folder}/: 3 files, 171 x 32 float32" in said
        assert "1 of 171 texts were cut" in said
    for number, lines in enumerate(texts):
        one, two = ((tmp_path / folder / f"part-{number}.npy") for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
        assert np.load(one).shape == (len(lines), 32)


def test_embedding_goes_on_when_a_worker_dies(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("interlingua.encoder.encode.WINDOW_TEXTS", 40)
    lines = [f"de{n} de{n + 1}" for n in range(400)]
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in lines))
    told = Recorded()
    for name, word, ray in (("one.npy", "nothing", None), ("two.npy", "de222", "auto")):
        encode = functools.partial(embed_or_die, folder=str(tmp_path), word=word)
        files = [str(tmp_path / "a.txt")]
        embedded(encode, files, str(tmp_path / name), ray=ray, progress=told)
    assert (tmp_path / "died").exists()
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()
    assert told.counts[-1] == (400, 400)


def test_from_texts_to_pairs_by_one_command(cluster, tmp_path):
    source, target, _ = sides(tmp_path)
    for name, options in (("one.tsv", ()), ("two.tsv", ("--ray", "auto", "--ray-cores", "2"))):
        code = run(
            "mine",
            "tests.mining.invented:embed",
            source.path,
            target.path,
            "--backend",
            "function",
            "-o",
            tmp_path / name,
            "--quiet",
            *options,
        )
        assert code == 0
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()
    assert len((tmp_path / "one.tsv").read_text().splitlines()) > 20
