from __future__ import annotations

import dataclasses
import json

import pytest

from interlingua.corpus.manifest import LanguagePairRecord, Manifest, SourceRecord
from interlingua.errors import CheckpointError
from interlingua.export.card import Provenance, model_card, read_provenance


@pytest.fixture
def run(tmp_path):
    """A run's folder and the corpus it points to."""
    pair = LanguagePairRecord(source="nob_Latn", target="eng_Latn", train=900, valid=50, heldout=50, dropped={})
    source = SourceRecord(
        name="django",
        licence="BSD-3-Clause",
        files=(),
        read=1000,
        skipped={},
        dropped={},
        train=900,
        valid=50,
        heldout=50,
    )
    unused = dataclasses.replace(source, name="nothing", train=0)
    manifest = Manifest(
        created="2026-01-01T00:00:00Z",
        versions={},
        config={},
        sources=(source, unused),
        language_pairs=(pair,),
        dropped={},
        decontaminated={},
        vocabulary={},
        tokens={},
        seconds={},
    )
    (tmp_path / "corpus").mkdir()
    manifest.save(tmp_path / "corpus")
    (tmp_path / "run").mkdir()
    asked = {"data": {"corpus": str(tmp_path / "corpus")}, "method": {"name": "ems"}}
    record = {"asked": asked, "versions": {"torch": "2.13.0"}}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(record))
    return tmp_path / "run"


@pytest.fixture
def results(tmp_path):
    entries = [{"main_score": score, "hf_subset": name} for name, score in (("deu-eng", 0.5), ("fra-eng", 0.25))]
    content = {"task_name": "Tatoeba", "scores": {"test": entries}, "interlingua": {"main_metric": "accuracy"}}
    folder = tmp_path / "results" / "model" / "rev"
    folder.mkdir(parents=True)
    (folder / "Tatoeba.json").write_text(json.dumps(content))
    return tmp_path / "results"


def test_a_card_says_what_is_on_record(encoder, run, results):
    card = model_card(encoder, read_provenance(run, name="owner/tiny", licence="Apache-2.0", results=[results]))
    front, body = card.split("---\n")[1:]
    assert front.splitlines() == [
        "language:",
        '- "en"',
        '- "nb"',
        'license: "Apache-2.0"',
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
    assert "| Tatoeba | accuracy | 37.50 % |" in body
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
    assert read_provenance(run, name="m").sources == ()
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"x\.json: not a result file"):
        read_provenance(None, name="m", results=[tmp_path / "x.json"])
