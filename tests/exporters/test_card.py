from __future__ import annotations

import dataclasses
import json

import pytest

from interlingua.corpus.manifest import LanguagePairRecord, Manifest, SourceRecord
from interlingua.errors import CheckpointError
from interlingua.exporters.card import Provenance, model_card, read_provenance


@pytest.fixture
def run(tmp_path):
    """A run's folder and the corpus it points to."""
    counts = {"train": 900, "valid": 50, "heldout": 50, "dropped": {}}
    pair = LanguagePairRecord(source="nob_Latn", target="eng_Latn", **counts)
    source = SourceRecord(
        name="django", license="BSD-3-Clause", files=(), read=1000, skipped={}, **counts
    )
    unused = dataclasses.replace(source, name="nothing", train=0)
    others = ("versions", "config", "dropped", "decontaminated", "vocabulary", "tokens", "seconds")
    manifest = Manifest(
        created="2026-01-01T00:00:00Z",
        sources=(source, unused),
        language_pairs=(pair,),
        **{name: {} for name in others},
    )
    (tmp_path / "corpus").mkdir()
    manifest.save(tmp_path / "corpus")
    (tmp_path / "run").mkdir()
    asked = {"data": {"corpus": str(tmp_path / "corpus")}, "method": {"name": "ems"}}
    record = {"requested": asked, "versions": {"torch": "2.13.0"}}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(record))
    return tmp_path / "run"


def write_result(path, digest, *, changed=(), overrides=(), scores=(0.5, 0.25)):
    entries = [{"main_score": score, "hf_subset": f"{score}-eng"} for score in scores]
    own = {
        "main_metric": "accuracy",
        "settings": {"languages": ["de", "fr"], "compare": "text"},
        "changed": list(changed),
        "provenance": {"model": {"digest": digest, "overrides": list(overrides)}},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"task_name": "Tatoeba", "scores": {"test": entries}, "interlingua": own})
    )


@pytest.fixture
def results(tmp_path, encoder):
    write_result(tmp_path / "results" / "model" / "rev" / "Tatoeba.json", encoder.digest())
    return tmp_path / "results"


def test_results_of_other_models_are_left_out_and_settings_are_shown(encoder, results, caplog):
    write_result(
        results / "model" / "rev-1" / "Tatoeba.json",
        encoder.digest(),
        changed=["languages", "compare"],
        overrides=["prompt='query: '"],
        scores=(1.0, 0.5),
    )
    write_result(results / "other" / "rev" / "Tatoeba.json", "f" * 64, scores=(0.9, 0.9))
    theirs = {"task_name": "Tatoeba", "scores": {"test": [{"main_score": 0.9}]}}
    (results / "theirs.json").write_text(json.dumps(theirs))
    card = model_card(
        encoder, read_provenance(None, name="m", digest=encoder.digest(), results=[results])
    )
    assert "| Tatoeba |  | accuracy | 37.50 % |" in card
    assert (
        "| Tatoeba | prompt='query: ', languages=de+fr, compare=text | accuracy | 75.00 % |" in card
    )
    assert "90.00" not in card
    assert caplog.messages == ["the card omits 2 of 4 result files, which belong to other models"]


@pytest.mark.parametrize(
    ("spdx", "hub"), [("MIT", "mit"), ("GPL-3.0-or-later", "gpl-3.0"), ("CC-BY-4.0", "cc-by-4.0")]
)
def test_licenses_have_the_hubs_names(encoder, spdx, hub):
    assert f'license: "{hub}"\n' in model_card(encoder, Provenance(name="m", license=spdx))


def test_a_card_says_what_is_on_record(encoder, run, results):
    known = {"digest": encoder.digest(), "license": "Apache-2.0", "results": [results]}
    card = model_card(encoder, read_provenance(run, name="owner/tiny", **known))
    front, body = card.split("---\n")[1:]
    assert front.splitlines() == [
        "language:",
        '- "en"',
        '- "nb"',
        'license: "apache-2.0"',
        "library_name: sentence-transformers",
        "pipeline_tag: sentence-similarity",
        "tags:",
        "- sentence-transformers",
        "- feature-extraction",
        "- sentence-similarity",
        "- interlingua",
    ]
    assert body.startswith("\n# owner/tiny\n")
    assert "| django | BSD-3-Clause | 900 |" in body
    assert "nothing" not in body
    assert "| Tatoeba |  | accuracy | 37.50 % |" in body
    assert "| method | ems |" in body
    assert "| trained with torch | 2.13.0 |" in body
    assert "Norwegian Bokmål (nob_Latn)" in body
    assert 'SentenceTransformer("owner/tiny")' in body
    assert encoder.digest()[:16] in body


def test_nothing_is_invented_where_nothing_is_known(encoder):
    card = model_card(encoder, Provenance(name="m"))
    assert "license" not in card
    assert "language:" not in card
    assert "## Training data" not in card
    assert "## Results" not in card


def test_prompts_are_in_table_and_snippet(encoder):
    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "query: "})
    card = model_card(encoder, Provenance(name="m"))
    assert "| prompt `query` | `query: ` |" in card
    assert ', prompt_name="query")' in card


def test_the_snippet_runs(encoder, tmp_path, capsys):
    pytest.importorskip("sentence_transformers")
    encoder.save(tmp_path / "m")
    card = model_card(encoder, Provenance(name=str(tmp_path / "m")))
    exec(card.split("```python\n")[1].split("```")[0], {})
    assert "tensor" in capsys.readouterr().out


def test_a_corpus_that_is_gone_or_a_broken_result(run, tmp_path):
    (tmp_path / "corpus" / "manifest.json").unlink()
    assert read_provenance(run, name="m", digest="").sources == ()
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"x\.json: .*result file"):
        read_provenance(None, name="m", digest="", results=[tmp_path / "x.json"])
