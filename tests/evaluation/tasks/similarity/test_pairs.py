from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from interlingua.errors import DataError
from interlingua.evaluation.significance import paired_bootstrap
from interlingua.evaluation.tasks.similarity.pairs import PairFolder, PairMRPC, PairPawsX, PairXNLI
from tests.evaluation.encoders import Hashes
from tests.evaluation.files import DATA, public_data, write
from tests.evaluation.tasks.angles import COSINES, Angles

POSITIVE = [0, 0, 0, 1, 0, 1]


def rows(cosines=COSINES, positive=POSITIVE):
    return "".join(
        f"{label}\ta x\tb {cosine}\n" for label, cosine in zip(positive, cosines, strict=True)
    )


def test_a_case_worked_by_hand(tmp_path):
    # cosines .93 +, .62 + and .62 - together, then negatives: (1/1 + 2/3) / 2
    write(tmp_path / "pairs" / "de.test.tsv", rows())
    write(tmp_path / "pairs" / "sw.test.tsv", rows(positive=[0, 0, 0, 0, 0, 1]))
    encoder = Angles()
    result = PairFolder().evaluate(encoder, tmp_path)
    assert result.task == "pair_folder_pairs"
    assert [(subset.name, subset.languages, subset.pairs) for subset in result.subsets] == [
        ("de", ("deu_Latn", "deu_Latn"), 6),
        ("sw", ("swh_Latn", "swh_Latn"), 6),
    ]
    assert result.subsets[0].scores == {
        "average_precision": pytest.approx((1 + 2 / 3) / 2),
        "positive_share": pytest.approx(1 / 3),
    }
    assert result.groups["all_2"]["average_precision"] == pytest.approx(((1 + 2 / 3) / 2 + 1) / 2)
    assert encoder.languages == ["deu_Latn", "deu_Latn", "swh_Latn", "swh_Latn"]
    assert PairFolder(languages=["sw"]).parts(tmp_path) == ["sw"]


def test_mteb_gives_the_same_number():
    """Compare on vectors of some width with mteb's own metric."""
    pytest.importorskip("mteb")
    from mteb.abstasks.pair_classification import AbsTaskPairClassification
    from sklearn.metrics.pairwise import paired_cosine_distances

    from interlingua.evaluation.metrics.precision import pair_average_precision
    from interlingua.evaluation.tasks.similarity.similarity import cosines

    draw = np.random.RandomState(0)
    x = draw.randn(300, 20).astype(np.float32)
    positive = draw.rand(300) < 0.4
    y = (x * positive[:, None] + 2 * draw.randn(300, 20)).astype(np.float32)
    theirs = AbsTaskPairClassification._compute_metrics_values(
        type(
            "Task", (AbsTaskPairClassification,), {"__init__": lambda self: None, "metadata": None}
        )(),
        (1 - paired_cosine_distances(x, y)).tolist(),
        positive.astype(int),
        True,
    )
    assert pair_average_precision(cosines(x, y), positive) == pytest.approx(theirs["ap"], abs=1e-9)
    assert theirs["ap"] > 0.5


def test_items_tell_whether_two_encoders_differ(tmp_path):
    draw = np.random.RandomState(0)
    positive = draw.rand(400) < 0.5
    good, bad = (
        np.clip(0.4 + gap * positive + 0.1 * draw.randn(400), 0, 1).round(4) for gap in (0.3, 0.05)
    )
    results = []
    for name, cosines in (("good", good), ("bad", bad)):
        write(tmp_path / name / "de.test.tsv", rows(cosines, positive.astype(int)))
        results.append(PairFolder().evaluate(Angles(), tmp_path / name))
    found = paired_bootstrap([results[1].items], [results[0].items], ["de"], resamples=200)
    scores = [result.subsets[0].scores["average_precision"] for result in results]
    assert found.mean == pytest.approx(scores[0] - scores[1])
    assert found.low < found.mean < found.high
    assert found.p_value < 0.05
    assert scores[0] == pytest.approx(average_precision_score(positive, good), abs=1e-6)


def test_the_data_sets(tmp_path):
    write(
        tmp_path / "mrpc" / "test.tsv",
        "Quality\t1\t2\ta\tb\n"
        + "".join(f"{p}\t1\t2\ta x\tb {c}\n" for p, c in zip(POSITIVE, COSINES, strict=True)),
    )
    xnli = ("neutral", "neutral", "contradiction", "entailment", "contradiction", "entailment")
    lines = "".join(f"a x\tb {c}\t{label}\n" for label, c in zip(xnli, COSINES, strict=True))
    write(tmp_path / "xnli" / "dev-fr.tsv", lines)
    write(tmp_path / "xnli" / "test-fr.tsv", lines)
    paws = "".join(f"7\ta x\tb {c}\t{p}\n" for p, c in zip(POSITIVE, COSINES, strict=True))
    write(
        tmp_path / "paws_x" / "x-final" / "ko" / "test_2k.tsv",
        "id\tsentence1\tsentence2\tlabel\n" + paws,
    )
    expected = (1 + 2 / 3) / 2
    tasks = {
        "pair_mrpc_mrpc": PairMRPC(),
        "pair_xnli_xnli": PairXNLI(),
        "pair_xnli_test_xnli": PairXNLI(split="test"),
        "pair_paws_x_paws_x": PairPawsX(),
    }
    for name, task in tasks.items():
        result = task.evaluate(Angles(), tmp_path)
        assert (result.task, result.main_score) == (name, pytest.approx(expected))
    write(tmp_path / "xnli" / "dev-ko.tsv", lines)  # not one of XNLI's own
    result = PairXNLI(neutral="left_out").evaluate(Angles(), tmp_path)
    assert result.members == {"all_2": ("fr", "ko"), "xnli_1of15": ("fr",)}
    assert (result.task, result.subsets[0].pairs) == ("pair_xnli_without_neutral_xnli", 4)
    assert [PairXNLI(split=split).size() for split in ("train", "dev", "test")] == [
        None,
        2490,
        5010,
    ]
    assert PairXNLI(neutral="left_out").size() == 1660
    assert PairPawsX().size() == 2000
    assert PairFolder().size() is None


def test_paws_x_is_known_by_its_size(tmp_path):
    paws = "".join(f"{n}\ta x\tb 0.{n:04}\t{n % 2}\n" for n in range(2000))
    write(tmp_path / "paws_x" / "ko" / "test_2k.tsv", "id\tsentence1\tsentence2\tlabel\n" + paws)
    assert PairPawsX().evaluate(Angles(), tmp_path).task == "pair_paws_x"


def test_what_can_go_wrong(tmp_path):
    write(tmp_path / "pairs" / "de.test.tsv", "1\ta x\tb 0.5\n")
    with pytest.raises(DataError, match=r"de: .*label"):
        PairFolder().evaluate(Angles(), tmp_path)
    with pytest.raises(DataError, match=r"labeled pairs .*dev"):
        PairFolder(split="dev").evaluate(Angles(), tmp_path)


@pytest.mark.data
@pytest.mark.parametrize(("task", "sizes"), [(PairMRPC, {1725}), (PairXNLI, {2490})])
def test_the_public_sets_are_recognized_and_scikit_learn_agrees(task, sizes):
    public_data(task.folders[0])
    result = task().evaluate(Hashes(), DATA)
    assert (result.task, bool(result.data_revision)) == (task.name, True)
    assert {subset.pairs for subset in result.subsets} == sizes
    for subset in result.subsets:
        items = result.items[subset.name]
        expected = average_precision_score(items.gold, items.values)
        assert subset.scores["average_precision"] == pytest.approx(expected)
