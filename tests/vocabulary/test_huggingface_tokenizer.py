from __future__ import annotations

import json

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from interlingua.errors import DataError
from interlingua.vocabulary.huggingface_tokenizer import read_tokenizer
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.builders import edit_json
from tests.encoder.conftest import FRAME, ROLES
from tests.encoder.multilingual import AWKWARD, TEXTS


@pytest.fixture
def folder(framed_vocabulary, tmp_path):
    """A tokenizer as transformers saves it, with padding and truncation switched on."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=framed_vocabulary.tokenizer, **ROLES, **FRAME
    )
    tokenizer.save_pretrained(tmp_path / "model")
    cut = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    edit_json(tmp_path / "model" / "tokenizer.json", truncation=cut)
    return tmp_path / "model"


def test_ids_are_those_of_transformers(folder):
    vocabulary = Vocabulary.from_huggingface(folder)
    reference = AutoTokenizer.from_pretrained(str(folder))
    assert vocabulary.encode(TEXTS + AWKWARD) == reference(TEXTS + AWKWARD)["input_ids"]
    cut = reference(TEXTS, truncation=True, max_length=8)["input_ids"]
    assert vocabulary.encode(TEXTS, max_tokens=8) == cut


def test_roles_come_from_the_configuration(folder):
    vocabulary = Vocabulary.from_huggingface(folder)
    assert vocabulary.special_tokens == {**ROLES, **FRAME}
    reference = AutoTokenizer.from_pretrained(str(folder))
    assert vocabulary.pad_id == reference.pad_token_id
    assert vocabulary.mask_id == reference.mask_token_id
    assert vocabulary.special_ids == tuple(sorted(set(reference.all_special_ids)))
    assert vocabulary.closing_tokens == 1
    assert vocabulary.language_tags == {}


def test_a_lone_tokenizer_file_has_the_usual_names(folder, tmp_path):
    (tmp_path / "t.json").write_bytes((folder / "tokenizer.json").read_bytes())
    vocabulary = Vocabulary.from_huggingface(tmp_path / "t.json")
    assert vocabulary.special_tokens == ROLES
    assert vocabulary.encode(TEXTS) == Vocabulary.from_huggingface(folder).encode(TEXTS)


def test_tokens_written_as_objects_and_null_are_read(folder):
    written = {"pad_token": {"content": "<s>", "special": True}, "bos_token": None}
    edit_json(folder / "tokenizer_config.json", **written)
    # Older versions of transformers write the roles into another file, too.
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    _, special_tokens = read_tokenizer(folder)
    assert special_tokens["pad_token"] == "<s>"
    assert "bos_token" not in special_tokens


def test_a_folder_without_tokenizer_json_goes_through_transformers(tmp_path):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    vocabulary = Vocabulary.from_huggingface(tmp_path)
    assert vocabulary.encode(["The cats"]) == [[2, 5, 6, 7, 3]]
    assert vocabulary.special_tokens["mask_token"] == "[MASK]"


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_tokenizer_is_named(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(DataError, match=r"tokenizer\.json: (not JSON|expected)"):
        Vocabulary.from_huggingface(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {}}}')
    with pytest.raises(DataError, match=r"not a tokenizer\.json"):
        Vocabulary.from_huggingface(tmp_path)


def test_nothing_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match="no tokenizer"):
        Vocabulary.from_huggingface(tmp_path)
    for path in (tmp_path / "absent", "./absent", "runs/a/model"):
        with pytest.raises(DataError, match=r"model folder or tokenizer.json not found"):
            Vocabulary.from_huggingface(path)


def test_the_hub_is_asked_once_and_for_the_tokenizer_alone(folder, monkeypatch):
    asked = []

    def download(name, allow_patterns):
        asked.append((name, allow_patterns))
        if name == "owner/model":
            return str(folder)
        raise OSError("no connection")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    found = Vocabulary.of_model("hf:owner/model")
    assert found.digest() == Vocabulary.from_huggingface(folder).digest()
    with pytest.raises(DataError, match=r"^hf:nowhere/x: "):
        Vocabulary.of_model("hf:nowhere/x")
    files = ["*.json", "*.model", "*.txt"]
    assert asked == [("owner/model", files), ("nowhere/x", files)]


@pytest.mark.parametrize("kind", ["bert", "own"])
def test_code_of_a_tokenizer_is_never_run(tmp_path, monkeypatch, kind):
    """Refuse code. 0.1.0 ran it after a "y" on standard input."""
    ran = tmp_path / "ran"
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    code = f"from pathlib import Path\nPath({str(ran)!r}).write_text('x')\nclass T:\n    pass\n"
    (tmp_path / "tokenization_own.py").write_text(code)
    code_of = {"AutoTokenizer": ["tokenization_own.T", "tokenization_own.T"]}
    named = {"tokenizer_class": "T", "auto_map": code_of}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(named))
    asked = []
    monkeypatch.setattr("builtins.input", lambda *question: asked.append(question) or "y")
    with pytest.raises(DataError, match="no tokenizer"):
        Vocabulary.from_huggingface(tmp_path)
    assert not asked
    assert not ran.exists()


def test_a_folder_without_its_vocabulary_file_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    settings = {"tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "pad_token": "[PAD]"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(DataError):
        read_tokenizer(tmp_path)
