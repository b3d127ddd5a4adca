from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from interlingua.errors import DataError, TaskError
from interlingua.evaluation.data.bucc import TRAINING_GOLD
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.translation.bucc import BuccBestF1, BuccMargin, BuccMTEB
from tests.evaluation.files import DATA, public_data

PROTOCOLS = [BuccMargin, BuccBestF1, BuccMTEB]


def write_split(folder, stem, sources, targets, gold, code="zh"):
    """Write texts and rows of gold pairs as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, texts in ((code, sources), ("en", targets)):
        lines = (f"{language}-{row:09}\t{text}\n" for row, text in enumerate(texts, 1))
        (folder / f"{stem}.{language}").write_text("".join(lines), encoding="utf-8")
    if gold is not None:
        lines = (f"{code}-{i + 1:09}\ten-{j + 1:09}\n" for i, j in gold)
        (folder / f"{stem}.gold").write_text("".join(lines), encoding="utf-8")


class Made:
    """Two texts with 40 translations among 90 and 120 sentences.

    Some sentences occur twice.
    """

    def __init__(self, seed, noise=0.5):
        rng = np.random.default_rng(seed)
        self.gold = list(
            zip(rng.permutation(90)[:40].tolist(), rng.permutation(120)[:40].tolist(), strict=True)
        )
        x, y = rng.standard_normal((90, 8)), rng.standard_normal((120, 8))
        for i, j in self.gold:
            y[j] = x[i] + noise * rng.standard_normal(8)
        sources, targets = (
            [f"s{seed} {row}" for row in range(90)],
            [f"t{seed} {row}" for row in range(120)],
        )
        for texts, vectors, pairs in (
            (sources, x, [(3, 70), (10, 11)]),
            (targets, y, [(0, 1), (5, 119), (7, 8)]),
        ):
            for first, second in pairs:
                texts[second], vectors[second] = texts[first], vectors[first]
        self.sources, self.targets = sources, targets
        self.table = dict(zip(sources, x, strict=True)) | dict(zip(targets, y, strict=True))

    def write(self, folder, stem, gold=True):
        write_split(folder, stem, self.sources, self.targets, self.gold if gold else None)
        return self

    def vectors(self, texts):
        rows = np.array([self.table[text] for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def score_all(x, y, k=4):
    """Compute margins of each row of x with its k nearest of y from the sorted matrix."""
    # Rounded from float64, so that sentences that occur twice have equal scores on every
    # processor.
    cosines = (x.astype(np.float64) @ y.T.astype(np.float64)).astype(np.float32)
    near_x, near_y = (
        np.argsort(-cosines, axis=1, kind="stable")[:, :k],
        np.argsort(-cosines.T, axis=1)[:, :k],
    )
    mean_x, mean_y = (
        np.take_along_axis(cosines, near_x, 1).mean(1),
        np.take_along_axis(cosines.T, near_y, 1).mean(1),
    )
    scores = [
        [cosines[i, j] / ((mean_x[i] + mean_y[j]) / 2) for j in row] for i, row in enumerate(near_x)
    ]
    return np.array(scores), near_x


def matched(x, y):
    """Return (score, i, j) by `max` retrieval, like both scripts."""
    (forward, to_y), (backward, to_x) = score_all(x, y), score_all(y, x)
    both = [(forward[i].max(), i, to_y[i][forward[i].argmax()]) for i in range(len(x))]
    both += [(backward[j].max(), to_x[j][backward[j].argmax()], j) for j in range(len(y))]
    seen_x, seen_y, found = set(), set(), []
    for score, i, j in sorted(both, key=lambda one: -one[0]):
        if i not in seen_x and j not in seen_y:
            seen_x.add(i)
            seen_y.add(j)
            found.append((score, int(i), int(j)))
    return found


def best_walk(found, right, gold):
    """Return (F1, precision, recall, threshold) at the best place of the list."""
    best, correct = (0.0, 0.0, 0.0, 0.0), 0
    for place, (score, *pair) in enumerate(found):
        correct += right(*pair)
        if correct:
            precision, recall = correct / (place + 1), correct / gold
            f1 = 2 * precision * recall / (precision + recall)
            if f1 > best[0]:
                best = f1, precision, recall, (score + found[min(place + 1, len(found) - 1)][0]) / 2
    return best


def laser_candidates(made):
    """Mine like LASER: unify the texts, mine, look up the ids of texts.

    Repeated texts have none.
    """
    unique = [list(dict.fromkeys(texts)) for texts in (made.sources, made.targets)]
    ids = []
    for texts in (made.sources, made.targets):
        counts = Counter(texts)
        ids.append({text: row for row, text in enumerate(texts) if counts[text] == 1})
    for score, i, j in matched(*map(made.vectors, unique)):
        if unique[0][i] in ids[0] and unique[1][j] in ids[1]:
            yield score, ids[0][unique[0][i]], ids[1][unique[1][j]]


@pytest.mark.parametrize("seed", range(4))
def test_lasers_protocol_is_the_oracle(tmp_path, table_encoder, seed):
    train, test = (
        Made(seed).write(tmp_path / "bucc", "training"),
        Made(seed + 100).write(tmp_path / "bucc", "test"),
    )
    encoder = table_encoder(train.table | test.table)
    result = BuccMargin().evaluate(encoder, tmp_path)
    gold = set(train.gold)
    threshold = best_walk(list(laser_candidates(train)), lambda i, j: (i, j) in gold, len(gold))[-1]
    extracted = {(i, j) for score, i, j in laser_candidates(test) if score >= threshold}
    correct = len(extracted & set(test.gold))
    (subset,) = result.subsets
    assert subset.scores["precision"] == pytest.approx(correct / len(extracted))
    assert subset.scores["recall"] == pytest.approx(correct / 40)
    assert subset.scores["f1"] == pytest.approx(2 * correct / (len(extracted) + 40))
    assert 0.3 < subset.scores["f1"] < 1
    assert (result.main_metric, subset.pairs) == ("f1", 40)
    assert result.notes == (
        f"zh-en: the threshold {threshold:.4f} was chosen on the training split",
    )


@pytest.mark.parametrize("seed", range(4))
def test_sentence_transformers_protocol_is_the_oracle(tmp_path, table_encoder, seed):
    made = Made(seed).write(tmp_path / "bucc", "zh-en.training")
    result = BuccBestF1().evaluate(table_encoder(made.table), tmp_path)
    found = [
        one
        for one in matched(made.vectors(made.sources), made.vectors(made.targets))
        if one[0] >= 1
    ]
    f1, precision, recall, _ = best_walk(found, lambda i, j: (i, j) in made.gold, 40)
    expected = {"best_f1": f1, "best_precision": precision, "best_recall": recall}
    assert dict(result.subsets[0].scores) == pytest.approx(expected)
    assert 0.3 < f1 < 1


def test_extracted_pairs_that_are_not_gold_are_kept(tmp_path, table_encoder):
    made = Made(2).write(tmp_path / "bucc", "zh-en.training")
    encoder = table_encoder(made.table)
    (result,) = evaluate_suite(encoder, [BuccBestF1(examples=90)], tmp_path)
    found = [
        one
        for one in matched(made.vectors(made.sources), made.vectors(made.targets))
        if one[0] >= 1
    ]
    *_, threshold = best_walk(found, lambda i, j: (i, j) in made.gold, 40)
    wrong = {
        (made.sources[i], made.targets[j]): (i, score)
        for score, i, j in found
        if score >= threshold and (i, j) not in made.gold
    }
    examples = result.examples["zh-en"]
    assert {(one.query, one.retrieved) for one in examples} == set(wrong) != set()
    partners = {i: made.targets[j] for i, j in made.gold}
    for one in examples:
        row, score = wrong[one.query, one.retrieved]
        assert (one.item, one.expected) == (row, partners.get(row, "(in no gold pair)"))
        assert one.retrieved_score == pytest.approx(score, rel=1e-5)
        assert one.measure == "ratio margin"
    (fewer,) = evaluate_suite(encoder, [BuccBestF1(examples=1)], tmp_path)
    assert fewer.examples["zh-en"] == examples[:1]


def test_scores_below_1_are_dropped(tmp_path, table_encoder):
    made = Made(1, noise=1.5).write(tmp_path / "bucc", "dev")
    scores = {
        least: BuccBestF1(least=least).evaluate(table_encoder(made.table), tmp_path).main_score
        for least in (0.5, 1.0, 1.5)
    }
    assert scores[0.5] >= scores[1.0] > scores[1.5]


def test_where_the_test_gold_is_missing_the_result_says_so(tmp_path, table_encoder):
    train, test = (
        Made(1).write(tmp_path / "bucc", "training"),
        Made(2).write(tmp_path / "bucc", "test", gold=False),
    )
    result = BuccMargin().evaluate(table_encoder(train.table | test.table), tmp_path)
    assert (result.main_metric, result.task) == ("f1_crossvalidated", "bucc_margin_bucc")
    assert set(result.subsets[0].scores) == {
        "best_f1",
        "best_precision",
        "best_recall",
        "f1_crossvalidated",
    }
    assert result.notes[0].startswith("zh-en: no gold file of a test split; the threshold ")
    assert result.subsets[0].scores["f1_crossvalidated"] <= result.subsets[0].scores["best_f1"]


def test_halves_are_of_the_sources_and_of_the_seed(tmp_path, table_encoder):
    made = Made(1, noise=0.9).write(tmp_path / "bucc", "dev")
    scores = [
        BuccMargin(seed=seed).evaluate(table_encoder(made.table), tmp_path).subsets[0].scores
        for seed in (1, 1, 2, 3)
    ]
    assert scores[0] == scores[1]
    assert len({one["f1_crossvalidated"] for one in scores}) > 1
    assert len({one["best_f1"] for one in scores}) == 1


def test_retrieval_and_margin_reach_the_mining(tmp_path, table_encoder):
    made = Made(3, noise=0.9).write(tmp_path / "bucc", "dev")
    tasks = [
        BuccMargin(),
        BuccMargin(retrieval="forward"),
        BuccMargin(margin="absolute"),
        BuccMargin(k=1),
    ]
    found = [task.evaluate(table_encoder(made.table), tmp_path) for task in tasks]
    assert len({result.main_score for result in found}) == 4
    assert [result.changed for result in found] == [(), ("retrieval",), ("margin",), ("k",)]


def test_mteb_is_worked_by_hand(tmp_path, table_encoder):
    # both sources find target 0: its F1 is 2/3, that of target 2 is 0, and target 1 has no source
    write_split(tmp_path / "bucc", "dev", ["a", "b", "c"], ["x", "y", "z"], [(0, 0), (2, 2)])
    table = {"a": [1, 0], "b": [0, 1], "c": [1, 0.1], "x": [1, 0], "y": [0.1, 1], "z": [0.8, 0.3]}
    result = BuccMTEB().evaluate(table_encoder(table), tmp_path)
    (subset,) = result.subsets
    assert dict(subset.scores) == pytest.approx(
        {"f1": 1 / 3, "precision": 1 / 4, "accuracy": 1 / 2}
    )
    assert result.items["zh-en"].values.tolist() == pytest.approx([2 / 3, 0])
    (example,) = result.examples["zh-en"]
    assert (example.query, example.expected, example.retrieved) == ("c", "z", "x")
    assert example.expected_score == pytest.approx(0.83 / np.hypot(1, 0.1) / np.hypot(0.8, 0.3))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_languages_and_names(tmp_path, number_encoder, protocol):
    texts = [f"number {n}" for n in range(12)]
    for code in ("de", "fr"):
        write_split(
            tmp_path / "bucc2018" / f"{code}-en",
            f"{code}-en.sample",
            texts,
            texts,
            [(3, 3), (7, 7)],
            code,
        )
    result = protocol(languages=["German"]).evaluate(number_encoder, tmp_path)
    assert [(subset.name, subset.languages) for subset in result.subsets] == [
        ("de-en", ("deu_Latn", "eng_Latn"))
    ]
    assert (result.task, result.dataset) == (f"{protocol.name}_bucc2018", "bucc2018")
    assert {language for _, language, _ in number_encoder.calls} == {"deu_Latn", "eng_Latn"}
    assert protocol().parts(tmp_path) == ["de-en", "fr-en"]
    both = protocol().evaluate(number_encoder, tmp_path)
    assert both.members["all_2"] == ("de-en", "fr-en")
    with pytest.raises(DataError, match=r"'ru'; .*de-en, fr-en"):
        protocol(languages=["ru"]).evaluate(number_encoder, tmp_path)
    with pytest.raises(DataError, match=r"'test' of de-en .*: sample"):
        protocol(split="test").evaluate(number_encoder, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"BUCC .*bucc2018/ or bucc2018_zh_en/"):
        protocol().evaluate(number_encoder, tmp_path / "empty")


def test_the_shared_tasks_training_data_stand_under_the_protocols_name(
    tmp_path, number_encoder, monkeypatch
):
    monkeypatch.setitem(TRAINING_GOLD, "de-en", 2)
    texts = [f"number {n}" for n in range(12)]
    write_split(tmp_path / "bucc", "de-en.training", texts, texts, [(3, 3), (7, 7)], "de")
    result = BuccBestF1().evaluate(number_encoder, tmp_path)
    assert (result.task, list(result.groups)) == ("bucc_best_f1", ["all_1", "bucc_1of4"])
    assert BuccMargin().evaluate(number_encoder, tmp_path).task == "bucc_margin_training"
    write_split(tmp_path / "bucc", "de-en.test", texts, texts, [(1, 1)], "de")
    assert BuccMargin().evaluate(number_encoder, tmp_path).task == "bucc_margin"


def test_a_test_gold_of_some_pairs_only(tmp_path, table_encoder):
    train, test = Made(1), Made(2)
    for code in ("de", "zh"):
        write_split(
            tmp_path / "bucc", f"{code}-en.training", train.sources, train.targets, train.gold, code
        )
    write_split(tmp_path / "bucc", "zh-en.test", test.sources, test.targets, test.gold)
    result = BuccMargin().evaluate(table_encoder(train.table | test.table), tmp_path)
    assert result.main_metric == "f1_crossvalidated"
    assert [set(subset.scores) for subset in result.subsets] == [
        {"best_f1", "best_precision", "best_recall", "f1_crossvalidated"}
    ] * 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broken_vectors_are_one_line(tmp_path, table_encoder, protocol):
    made = Made(1).write(tmp_path / "bucc", "dev")
    row = made.gold[0][0]
    made.table[made.sources[row]] = np.full(8, np.nan)
    with pytest.raises(DataError, match="NaN or infinity"):
        protocol().evaluate(table_encoder(made.table), tmp_path)
    with pytest.raises(TaskError, match="NaN or infinity"):
        evaluate_suite(table_encoder(made.table), [protocol()], tmp_path)


@pytest.mark.data
def test_the_public_sample_is_recognized():
    public_data("bucc2018_zh_en")

    class Characters:
        def encode(self, texts, *, language=None):
            vectors = np.ones((len(texts), 64), np.float32)
            for row, text in zip(vectors, texts, strict=True):
                np.add.at(
                    row, [ord(character) % 64 for character in text if not character.isalpha()], 9
                )
            return vectors

    found = [protocol().evaluate(Characters(), DATA) for protocol in PROTOCOLS]
    assert [result.task for result in found] == [
        "bucc_margin_dev",
        "bucc_best_f1_dev",
        "bucc_mteb_dev",
    ]
    assert {result.data_revision for result in found} == {"MESH@68f82e2"}
    assert [result.subsets[0].pairs for result in found] == [257] * 3


@pytest.mark.parametrize("protocol", [BuccMargin, BuccBestF1])
@pytest.mark.parametrize("with_test", [True, False])
def test_items_by_source_sentence_make_up_the_score(tmp_path, table_encoder, protocol, with_test):
    train, test = Made(1).write(tmp_path / "bucc", "training"), Made(101)
    if with_test:
        test.write(tmp_path / "bucc", "test")
    result = protocol().evaluate(table_encoder(train.table | test.table), tmp_path)
    (items,) = result.items.values()
    assert len(items.values) == 90
    assert items.values.sum() / items.weights.sum() == pytest.approx(result.main_score, abs=1e-12)
    assert 0 < result.main_score < 1
