from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from interlingua.analysis.agnosticism import Agnosticism
from interlingua.errors import DataError
from interlingua.evaluation.tasks.translation.flores import FloresP1
from tests.analysis.conftest import LINES, fixed_subject, random_vectors, unit, write_lines
from tests.progress_records import Recorded

DATA = Path(os.environ.get("INTERLINGUA_DATA") or Path.home() / ".cache/interlingua/data")
NAMES = [
    "language_identification", "same_language_bias", "same_language_bias_without_translations",
    "accuracy_own_pool", "accuracy_mixed_pool", "mixed_pool_drop", "hubness_skewness", "antihubs",
    "mean_cosine", "partition_isotropy", "effective_rank", "language_variance_share",
    "language_mean_distance", "accuracy_gap",
]  # fmt: skip


def test_the_panel(folder):
    subject = fixed_subject(random_vectors(3, 4, 5))
    told = Recorded()
    found = Agnosticism(k=3).run(subject, folder, progress=told)
    assert [measure.name for measure in found.measures] == NAMES
    assert found.languages == tuple(sorted(LINES))
    assert found.settings == {"languages": None, "k": 3, "l2": 1e-3}
    assert found.changed == ("k",)
    assert len(found.tables["accuracy_mixed_pool"]) == 6
    assert told.counts[-1] == (36, 36)
    assert [done for done, _ in told.counts] == sorted(done for done, _ in told.counts)
    assert {total for _, total in told.counts} == {36}


def test_its_accuracy_is_the_one_of_flores_p_at_1(folder):
    subject = fixed_subject(random_vectors(3, 4, 3, seed=5))
    found = Agnosticism().run(subject, folder)
    result = FloresP1().evaluate(subject.embeds, folder)
    assert found["accuracy_own_pool"].value == pytest.approx(result.main_score)
    for subset in result.subsets:
        assert found.tables["accuracy_own_pool"][subset.name] == subset.scores["accuracy"]


def test_identical_vectors_give_numbers(folder):
    found = Agnosticism().run(fixed_subject(unit(np.ones((3, 4, 5)))), folder)
    assert all(np.isfinite(measure.value) for measure in found.measures)
    assert found["accuracy_own_pool"].value == 0
    assert found["language_identification"].value == pytest.approx(1 / 3)


def test_limits_are_one_line(folder, tmp_path):
    vectors = random_vectors(3, 4, 5)
    with pytest.raises(DataError, match=r"2 languages .*found 1"):
        Agnosticism(languages=("de",)).run(fixed_subject(vectors), folder)
    vectors[0, 0, 0] = np.nan
    with pytest.raises(DataError, match="NaN"):
        Agnosticism().run(fixed_subject(vectors), folder)
    single = {code: texts[:1] for code, texts in LINES.items()}
    with pytest.raises(DataError, match="one line in each"):
        Agnosticism().run(
            fixed_subject(random_vectors(3, 4, 5)), write_lines(tmp_path / "single", single)
        )


@pytest.mark.data
def test_flores_is_recognized():
    if not (DATA / "flores200_devtest").is_dir():
        pytest.skip(f"{DATA / 'flores200_devtest'} is not there")

    class Positions:
        """Encoder that knows the line, and puts the language into one coordinate."""

        def encode(self, texts, *, language=None):
            lines = np.random.default_rng(0).standard_normal((len(texts), 256))
            lines[:, 0] = {"deu_Latn": -9, "eng_Latn": 0, "jpn_Jpan": 9}[language]
            return lines

    subject = fixed_subject(random_vectors(3, 4))._replace(embeds=Positions())
    found = Agnosticism(languages=("de", "en", "ja")).run(subject, DATA)
    assert (found.task, found.data_revision) == ("agnosticism", "OPUS-MT-testsets@ac0f19c")
    assert found["language_identification"].value > 0.99
    assert found["same_language_bias_without_translations"].value > 0.9
    assert found["accuracy_own_pool"].value > 0.99
