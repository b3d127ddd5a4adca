"""Probabilities of links: those of ``interlingua score``, or none and the reason."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import interlingua
from interlingua.errors import ConfigError
from interlingua.mining.calibration.calibration import load_calibration
from interlingua.serving.model import ServedModel
from interlingua.serving.routes.link_probabilities import LinkCalibrations, own_calibration
from interlingua.serving.server import calibrations_for
from interlingua.storage.formats import CALIBRATION
from interlingua.storage.record import read_record, write_record
from tests.serving.conftest import CODES, LINES, learn

FEW = {"source": ["de1 de2", "de3", "de4 de5"], "target": ["en1 en2", "en3", "en4 en5"], **CODES}


@pytest.fixture(scope="module")
def folder(calibrated):
    """A saved model, and calibrations of cosines and of margins."""
    learn(calibrated, "margin.json", k=2, window=100)
    return calibrated


@pytest.fixture
def serve(start, encoder):
    def serve(path, **options):
        model = ServedModel(encoder, "tiny", **options)
        return start(model, calibrations=path and LinkCalibrations(model, path))

    return serve


def texts_of(reply):
    return [
        (link["source_text"], link["target_text"])
        for link in reply["links"]
        if link["source"] and link["target"]
    ]


def probabilities_of(reply):
    return [link["probability"] for link in reply["links"] if link["source"] and link["target"]]


def test_few_links_have_the_probabilities_of_score(serve, folder):
    reply = serve(folder / "cosine.json").post("/align", json=FEW).json()
    path = folder / "cosine.json"
    prior = load_calibration(path, "de", "en").prior
    expected = interlingua.score(
        folder / "tiny",
        texts_of(reply),
        cosine=True,
        calibration=path,
        prior=prior,
        probability=1e-9,
        **CODES,
    )
    assert reply["no_probabilities"] is None
    assert reply["prior"] == pytest.approx(prior)
    assert len(probabilities_of(reply)) >= 2
    assert probabilities_of(reply) == pytest.approx(
        [row.columns["probability"] for row in expected], abs=1e-4
    )


@pytest.mark.parametrize("name", ["cosine", "margin"])
def test_many_links_have_their_own_share(serve, folder, name):
    path = folder / f"{name}.json"
    body = {
        "source": [one for one, _ in LINES[:80]],
        "target": [other for _, other in LINES[:80]],
        **CODES,
    }
    reply = serve(path).post("/align", json=body).json()
    options = {"cosine": True} if name == "cosine" else {"k": 2, "window": 100}
    options["drop"] = "none"  # the numbers of invented words are no numbers
    rows = list(
        interlingua.score(folder / "tiny", texts_of(reply), calibration=path, **CODES, **options)
    )
    scores = np.array([row.score for row in rows])
    assert len(scores) >= 40
    assert reply["prior"] == pytest.approx(
        load_calibration(path, "de", "en").estimate_share(scores), abs=1e-3
    )
    assert probabilities_of(reply) == pytest.approx(
        [row.columns["probability"] for row in rows], abs=1e-3
    )


def test_a_sentence_left_alone_has_none(serve, folder):
    reply = (
        serve(folder / "cosine.json")
        .post("/align", json={**FEW, "source": ["de1", " "], "target": ["en1"]})
        .json()
    )
    alone = [
        link["probability"] for link in reply["links"] if not (link["source"] and link["target"])
    ]
    assert alone == [None]


@pytest.mark.parametrize(
    ("name", "changed", "reason"),
    [
        (None, {}, "--calibration"),
        ("cosine", {"source_language": None}, "the languages are missing"),
        ("cosine", {"target_language": "fr"}, "no calibration for deu_Latn-fra_Latn"),
        ("cosine", {"prompt": "query"}, "prompt"),
        ("margin", {}, "at least 20 pairs"),
    ],
)
def test_without_probabilities_the_reply_says_why(serve, folder, name, changed, reason):
    client = serve(folder / f"{name}.json" if name else None)
    reply = client.post("/align", json={**FEW, **changed})
    assert reply.status_code == 200
    assert reason in reply.json()["no_probabilities"]
    assert str(folder) not in reply.text
    assert set(probabilities_of(reply.json())) == {None}


def test_the_data_type_must_be_that_of_the_calibration(serve, folder):
    client = serve(folder / "cosine.json", dtype="bfloat16")
    assert "found bfloat16" in client.post("/align", json=FEW).json()["no_probabilities"]
    learn(folder, "bfloat16.json", cosine=True, dtype="bfloat16", prompt="query")
    client = serve(folder / "bfloat16.json", dtype="bfloat16", prompt="query")
    assert client.post("/align", json=FEW).json()["no_probabilities"] is None


def test_what_auto_takes_goes_with_a_calibration_in_float32(serve, folder, monkeypatch):
    monkeypatch.setattr("interlingua.serving.model.automatic_dtype_name", lambda _: "int8")
    learn(folder, "auto.json", cosine=True, dtype="auto")
    for name in ("cosine", "auto"):
        client = serve(folder / f"{name}.json", dtype="auto")
        assert client.get("/info").json()["model_dtype"] == "int8"
        assert client.post("/align", json=FEW).json()["no_probabilities"] is None
    client = serve(folder / "auto.json", dtype="int8")
    assert (
        "expected vectors with auto and no prompt"
        in client.post("/align", json=FEW).json()["no_probabilities"]
    )


def test_the_other_direction_is_calibrated_too(serve, folder):
    client = serve(folder / "cosine.json")
    turned = {
        "source": FEW["target"],
        "target": FEW["source"],
        "source_language": "en",
        "target_language": "de",
    }
    assert client.post("/align", json=turned).json()["no_probabilities"] is None
    assert client.get("/info").json()["calibrated_languages"] == ["deu_Latn-eng_Latn"]
    assert serve(None).get("/info").json()["calibrated_languages"] == []


def test_calibrations_of_another_model_are_refused(folder):
    other = SimpleNamespace(digest="0" * 64)
    with pytest.raises(ConfigError, match="other models"):
        LinkCalibrations(other, folder / "cosine.json")


def test_calibrations_of_mined_scores_are_refused(encoder, folder, tmp_path):
    content = read_record(folder / "cosine.json", CALIBRATION)
    content["pairs"]["deu_Latn-eng_Latn"]["scoring"] = "ratio max k=4"
    write_record(tmp_path / "mined.json", CALIBRATION, content)
    with pytest.raises(ConfigError, match="interlingua score"):
        LinkCalibrations(ServedModel(encoder, "tiny"), tmp_path / "mined.json")


def test_a_calibration_in_the_model_s_folder_is_found(encoder, folder, tmp_path, capsys):
    model = ServedModel(encoder, "tiny")
    encoder.save(tmp_path / "tiny")
    path = str(tmp_path / "tiny")
    assert own_calibration("hf:owner/name") is None
    assert calibrations_for(model, path) is None
    (tmp_path / "tiny" / "calibration.json").write_bytes((folder / "cosine.json").read_bytes())
    assert calibrations_for(model, path).language_pairs == ["deu_Latn-eng_Latn"]
    (tmp_path / "tiny" / "calibration.json").write_text("{}")
    assert calibrations_for(model, path) is None
    assert "calibration.json" in capsys.readouterr().err
