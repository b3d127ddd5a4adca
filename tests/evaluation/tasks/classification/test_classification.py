"""Common behavior of the classification tasks.

Their protocols are in test_zero_shot.py and test_few_shot.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError, TaskError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.classification.classification import LabeledLanguage
from interlingua.evaluation.tasks.classification.few_shot import FewShotFolder
from interlingua.evaluation.tasks.classification.zero_shot import ZeroShotFolder
from tests.evaluation.tasks.topics import Topics, write_topics
from tests.progress_records import Recorded


class Plain(Topics):
    """Topics with the arguments of a suite."""

    dim = 8

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=0):
        return Topics.encode(self, texts, language=language)


def test_a_domain_is_what_stands_before_the_language():
    assert LabeledLanguage("books.de", "deu_Latn", {}).domain == "books"
    assert LabeledLanguage("de", "deu_Latn", {}).domain == ""


def test_two_protocols_on_one_data_set_embed_each_text_once(tmp_path):
    write_topics(tmp_path / "labeled", ("en", "de"))
    encoder, told = Plain(), Recorded()
    tasks = [ZeroShotFolder(epochs=2, seeds=(1, 2)), FewShotFolder()]
    zero, few = evaluate_suite(encoder, tasks, tmp_path, progress=told)
    texts = [text for _, asked in encoder.asked for text in asked]
    assert len(texts) == len(set(texts)) == 2 * (36 + 12 + 21)
    assert zero.data_sha256 == few.data_sha256
    assert told.done == told.total
    assert {result.task for result in (zero, few)} == {
        "zero_shot_folder_labeled",
        "few_shot_folder_labeled",
    }


def test_a_suite_takes_the_sets_that_are_there(tmp_path):
    write_topics(tmp_path / "labeled", ("en", "de"))
    (tmp_path / "mrpc").mkdir()
    (tmp_path / "mrpc" / "train.tsv").write_text("Quality\tno language\n")
    assert [task.name for task in build_tasks(["few_shot_classification"], data=tmp_path)] == [
        "few_shot_folder"
    ]
    settings = ['zero_shot_classification.sources=["en"]', "zero_shot_folder.seeds=[3, 4]"]
    (task,) = build_tasks(["zero_shot_classification"], data=tmp_path, settings=settings)
    assert (task.name, task.sources, task.seeds) == ("zero_shot_folder", ("en",), (3, 4))
    with pytest.raises(DataError, match="no data set of pair_classification"):
        build_tasks(["pair_classification"], data=tmp_path)


def test_vectors_with_nan_are_refused(tmp_path):
    class Broken(Plain):
        def encode(self, texts, **options):
            return np.full((len(texts), 8), np.nan, np.float32)

    write_topics(tmp_path / "labeled", ("en",))
    with pytest.raises(TaskError, match="NaN"):
        evaluate_suite(Broken(), ["few_shot_folder"], tmp_path)


def test_an_unknown_language(tmp_path):
    write_topics(tmp_path / "labeled", ("en",))
    with pytest.raises(DataError, match=r"no file .*'sw'.*: en"):
        FewShotFolder(languages=["sw"]).evaluate(Topics(), tmp_path)
    with pytest.raises(DataError, match=r"labeled texts .* labeled/"):
        FewShotFolder().evaluate(Topics(), tmp_path.parent)
