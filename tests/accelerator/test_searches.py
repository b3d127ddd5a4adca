"""Where the library's searches are done: large ones on the GPU, and they find the same there."""

import pytest
import torch

from interlingua.analysis.subject import Subject
from interlingua.analysis.token_matching import TokenMatching
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.tasks.retrieval.retrieval import XQuAD
from interlingua.evaluation.tasks.translation.bucc import BuccBestF1, BuccMargin, BuccMTEB
from interlingua.evaluation.tasks.translation.paracrawl import ParaCrawlRetrieval
from interlingua.evaluation.tasks.translation.tatoeba import Tatoeba
from interlingua.evaluation.tasks.translation.xsim import XSim
from interlingua.mining.score import BitextScorer, ScoreConfig
from interlingua.retrieval.topk import exact
from interlingua.retrieval.topk.exact import exact_topk, search_device, searching_on
from tests.accelerator.simulated import Device
from tests.analysis.conftest import write_lines as write_parallel
from tests.encoder.conftest import tiny_vocabulary
from tests.evaluation.conftest import NumberEncoder, TableEncoder, write_pairs
from tests.evaluation.tasks.retrieval.test_passages import evaluate, write_language
from tests.evaluation.tasks.translation.test_bucc import Made
from tests.evaluation.tasks.translation.test_paracrawl import Noisy, write_tsv
from tests.mining.invented import write_lines
from tests.mining.test_score import bitext
from tests.mining.two_sides import mine, sides
from tests.mining.words import encode
from tests.retrieval.topk.scanners import crowded
from tests.tiny import tiny_encoder


@pytest.fixture
def devices(cuda: Device, monkeypatch):
    """The kinds of devices of all searches."""
    found = []
    original = exact.make_scanner

    def noted(frame, *, device, pairs):
        found.append(torch.device(device).type)
        return original(frame, device=device, pairs=pairs)

    monkeypatch.setattr(exact, "make_scanner", noted)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2**30, 2**30), raising=False)
    return found


def outcome(result):
    """Return the measurements of a task, without times."""
    scores = [(subset.name, dict(subset.scores)) for subset in result.subsets]
    return scores, {name: items.values.tolist() for name, items in result.items.items()}


def bucc(task):
    def run(folder):
        train = Made(1).write(folder / "bucc", "training")
        test = Made(101).write(folder / "bucc", "test")
        return outcome(task.evaluate(TableEncoder(train.table | test.table), folder))

    return run


def paracrawl(folder):
    write_tsv(folder / "paracrawl", "en-de.txt", range(400))
    return outcome(ParaCrawlRetrieval(queries=60, candidates=250).evaluate(Noisy(), folder))


def numbers(task, data):
    """Return a task of sentence pairs, of which some have different numbers."""

    def run(folder):
        pairs = [(f"Zahl {n ^ (n % 5 == 0)}", f"number {n}") for n in range(20)]
        write_pairs(folder / data, "deu-eng", pairs)
        return outcome(task.evaluate(NumberEncoder(), folder))

    return run


def passages(**options):
    def run(folder):
        for code, start in (("sw", 0), ("en", 45)):
            own = [f"{code} {start + n}" for n in range(20)]
            write_language(folder / "xquad", code, [(f"q {start}", 0)], own)
        return outcome(evaluate(XQuAD(**options), folder / "xquad"))

    return run


def tokens(folder):
    write_parallel(folder / "flores200_devtest")
    torch.manual_seed(0)
    encoder = tiny_encoder(tiny_vocabulary(frame=True), "cls").eval()
    own = OwnEncoder(encoder, name="tiny")
    with CachedEncoder(own) as cached:
        subject = Subject(cached, own.info, "", encoder, 64)
        analysis = TokenMatching(sentences=3, k=4).run(subject, folder / "flores200_devtest")
    return [(measure.name, measure.value) for measure in analysis.measures]


def score(folder):
    blocks = BitextScorer(encode, ScoreConfig(k=3, window=8)).score(bitext(20))
    return [block.scores.tolist() for block in blocks]


def mined(folder, source, target, **options):
    return mine(source, target, folder / "work", **options).pairs.tolist()


def codes(folder):
    source, target, _ = sides(folder)
    return mined(folder, source, target, approximate="binary:2", device="cuda")


def documents(folder):
    source, target, _ = sides(folder)
    for side in (source, target):
        lines = side.path.read_text().splitlines()
        write_lines(side.path, [f"d{n % 3}\t{line}" for n, line in enumerate(lines)])
    source, target = (side._replace(layout="documents") for side in (source, target))
    return mined(folder, source, target, documents="equal", background=10, device="cuda")


SEARCHES = {
    "bucc": bucc(BuccMargin()),
    "bucc_best_f1": bucc(BuccBestF1()),
    "bucc_mteb": bucc(BuccMTEB()),
    "paracrawl": paracrawl,
    "tatoeba": numbers(Tatoeba(), "tatoeba_laser"),
    "xsim": numbers(XSim(), "heldout"),
    "xquad": passages(),
    "xquad in bytes": passages(precision="int8"),
    "token matching": tokens,
    "score": score,
    "mine by codes": codes,
    "mine in documents": documents,
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_large_search_is_on_the_gpu_and_finds_the_same(
    cuda: Device, devices, monkeypatch, tmp_path, name
):
    run = SEARCHES[name]
    for folder in ("small", "large"):
        (tmp_path / folder).mkdir()
    expected = run(tmp_path / "small")
    assert set(devices) == {"cpu"}
    devices.clear()
    monkeypatch.setattr(exact, "LARGE", 1)
    with cuda.recorded():
        found = run(tmp_path / "large")
    assert set(devices) == {"cuda"}
    assert found == expected


def test_mining_of_whole_files_is_where_it_is_asked_for(cuda: Device, monkeypatch, tmp_path):
    source, target, _ = sides(tmp_path)
    with cuda.recorded():
        found = mine(source, target, tmp_path / "cuda", device="cuda").pairs.tolist()
    assert cuda.launches["aten::mm"]
    with cuda.recorded():
        assert mine(source, target, tmp_path / "cpu", device="cpu").pairs.tolist() == found
    assert not cuda.launches


def test_a_device_that_is_given_has_the_large_searches(devices, monkeypatch):
    x, y = crowded(3, 20, 30, 8)
    exact_topk(x, y, k=2, device="cuda")
    monkeypatch.setattr(exact, "LARGE", 1)
    exact_topk(x, y, k=2, device="cpu")
    assert devices == ["cpu", "cpu"]
    assert search_device(20, 30, "cuda:1") == torch.device("cuda", 1)


def test_who_runs_a_task_says_where_it_searches(devices, monkeypatch):
    """Search on the device of ``evaluate --device cpu``."""
    x, y = crowded(3, 20, 30, 8)
    monkeypatch.setattr(exact, "LARGE", 1)
    with searching_on("cpu"):
        exact_topk(x, y, k=2)
        with searching_on(None):
            exact_topk(x, y, k=2)
        assert search_device(20, 30, "cuda:1") == torch.device("cuda", 1)
    assert devices == ["cpu", "cpu"]
    with searching_on("cuda:1"):
        assert search_device(20, 30) == torch.device("cuda", 1)
