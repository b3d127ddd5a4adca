from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError, LanguageAbsentError
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.scores import Items
from interlingua.evaluation.task import LanguageTask, Scored, StreamedTask, Task, Unit, options
from interlingua.evaluation.tasks.classification.few_shot import FewShotFolder
from interlingua.evaluation.tasks.classification.zero_shot import ZeroShotFolder
from interlingua.evaluation.tasks.retrieval.retrieval import TyDiGoldP
from interlingua.evaluation.tasks.similarity.pairs import PairXNLI
from interlingua.evaluation.tasks.similarity.sts import STS17
from interlingua.evaluation.tasks.translation.bucc import BuccBestF1, BuccMargin
from interlingua.evaluation.tasks.translation.ntrex import NtrexF1
from interlingua.evaluation.tasks.translation.paracrawl import ParaCrawlRetrieval
from interlingua.evaluation.tasks.translation.xsim import XSim
from tests.progress_records import Recorded


class Echo(LanguageTask):
    """Share of the numbers that are even, the whole protocol of a user's own task."""

    name = "echo"
    main_metric = "even"
    folders = ("echo",)
    expected = "number files"

    def files(self, folder):
        return {path.stem: path for path in sorted(folder.glob("*.numbers"))}

    def unit(self, key, file, folder):
        lines = file.read_text().split()
        code = full_code(key)
        return Unit(
            name=key,
            languages=(code, code),
            pairs=len(lines),
            data=lines,
            contents=[lines],
            sentences=len(lines),
        )

    def score(self, encoder, unit):
        even = encoder.encode(unit.data, language=unit.languages[0])
        return Scored({"even": float(even.mean())}, Items(even), notes=["one note"])


class Parity:
    def encode(self, texts, *, language=None, role=None, titles=None):
        return np.array([int(text) % 2 == 0 for text in texts], dtype=np.float64)


@pytest.fixture
def numbers(tmp_path):
    folder = tmp_path / "echo"
    folder.mkdir()
    (folder / "de.numbers").write_text("1 2 3 4")
    (folder / "fr.numbers").write_text("2 4")
    return folder


def test_a_task_is_its_data_and_its_score(numbers):
    result = Echo().evaluate(Parity(), numbers.parent)
    assert [(subset.name, subset.pairs, subset.scores) for subset in result.subsets] == [
        ("de", 4, {"even": 0.5}),
        ("fr", 2, {"even": 1.0}),
    ]
    assert result.groups == {"all_2": {"even": 0.75}}
    assert result.members == {"all_2": ("de", "fr")}
    assert (result.task, result.dataset, result.data_revision) == ("echo_echo", "echo", None)
    assert result.notes == ("de: one note", "fr: one note")
    assert result.items["de"].values.tolist() == [0, 1, 0, 1]
    assert (result.settings, result.changed) == ({"languages": None}, ())


def test_languages_are_chosen_and_named_where_they_are_absent(numbers):
    task = Echo(languages=("French",))
    assert task.parts(numbers) == ["fr"]
    assert [subset.name for subset in task.evaluate(Parity(), numbers).subsets] == ["fr"]
    with pytest.raises(LanguageAbsentError, match="'Italian'"):
        Echo(languages=("Italian",)).parts(numbers)


def test_the_fingerprint_changes_with_a_text(numbers):
    before = Echo().evaluate(Parity(), numbers).data_sha256
    (numbers / "fr.numbers").write_text("2 6")
    assert Echo().evaluate(Parity(), numbers).data_sha256 != before


def test_all_is_read_before_anything_is_embedded(numbers):
    (numbers / "xx.numbers").write_text("")

    class Untouched:
        def encode(self, texts, **how):
            raise AssertionError("embedded before the broken file was found")

    with pytest.raises(DataError, match="xx"):
        Echo().evaluate(Untouched(), numbers)


def test_progress_counts_sentences(numbers):
    seen = Recorded()
    Echo().evaluate(Parity(), numbers, progress=seen)
    assert seen.states == [("de", 4, 6), ("fr", 6, 6)]


def test_streamed_units_to_come_are_taken_to_be_as_long(numbers):
    class Streamed(Echo, StreamedTask):
        pass

    seen = Recorded()
    Streamed().evaluate(Parity(), numbers, progress=seen)
    assert seen.states == [("de", 4, 8), ("fr", 6, 6)]


def test_a_task_without_a_protocol_is_named(numbers):
    class Nothing(Task):
        name = "nothing"
        main_metric = "none"
        folders = ()
        expected = "anything"

        def files(self, folder):
            return {"one": folder}

    with pytest.raises(NotImplementedError, match="Nothing"):
        Nothing().evaluate(Parity(), numbers)


def test_options_of_a_task_and_which_of_them_are_not_the_defaults():
    assert options(XSim()) == {
        "settings": {"languages": None, "compare": "index", "k": 4},
        "changed": (),
    }
    assert options(XSim(languages=("de",), k=2)) == {
        "settings": {"languages": ["de"], "compare": "index", "k": 2},
        "changed": ("languages", "k"),
    }


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (XSim, {"k": 0}, "k: expected"),
        (XSim, {"compare": "words"}, "compare 'words'; .*index, text"),
        (BuccMargin, {"k": 0}, "k: expected"),
        (BuccBestF1, {"k": -1}, "k: expected"),
        (BuccMargin, {"margin": "product"}, "margin 'product'; .*ratio, distance, absolute"),
        (BuccMargin, {"retrieval": "both"}, "'both'; .*forward, backward, intersection, max"),
        (FewShotFolder, {"samples_per_label": 0}, "samples_per_label: expected"),
        (FewShotFolder, {"draws": 0}, "draws: expected"),
        (ZeroShotFolder, {"epochs": 0}, "epochs: expected"),
        (STS17, {"resamples": -1}, "resamples: expected"),
        (NtrexF1, {"directions": "all"}, "directions 'all'; .*english, mteb"),
        (PairXNLI, {"split": "all"}, "split 'all'; .*train, dev, test"),
        (PairXNLI, {"neutral": "no"}, "neutral 'no'; .*negative, left_out"),
        (TyDiGoldP, {"similarity": "l2"}, "similarity 'l2'; .*auto, cosine, dot"),
        (TyDiGoldP, {"precision": "int4"}, "precision 'int4'; .*float32, int8, binary, hamming"),
        (ParaCrawlRetrieval, {"direction": "both"}, "direction 'both'; .*en-x, x-en"),
    ],
)
def test_options_are_what_their_types_and_metadata_say(task, options, message):
    with pytest.raises(ConfigError, match=message):
        task(**options)


def test_a_type_that_is_not_there_leaves_the_other_checks():
    class Elsewhere(BuccMargin):
        names: Missing = ()

    with pytest.raises(ConfigError, match="retrieval 'both"):
        Elsewhere(retrieval="both")


def test_a_task_without_files_is_named(tmp_path):
    with pytest.raises(NotImplementedError, match="Bare must define reader"):
        type("Bare", (Task,), {})().files(tmp_path)


def test_a_folder_to_write_to_is_no_setting():
    found = options(TyDiGoldP(runs=Path("somewhere"), bm25=True))
    assert "runs" not in found["settings"]
    assert found["changed"] == ("bm25",)
