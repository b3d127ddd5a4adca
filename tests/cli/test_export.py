from __future__ import annotations

import pytest
import torch

from interlingua.cli import main
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder

pytest.importorskip("sentence_transformers")


def test_export_says_how_close_the_vectors_are(word_vocabulary, tmp_path, capsys):
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    Encoder.from_scratch(config, word_vocabulary).save(tmp_path / "model")
    arguments = ["export", str(tmp_path / "model"), "-o", str(tmp_path / "out"), "--licence", "MIT"]
    with pytest.raises(SystemExit) as stop:
        main.main(arguments)
    assert not stop.value.code
    assert "smallest cosine 1.0000000" in capsys.readouterr().out
    assert 'license: "mit"' in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(SystemExit) as stop:
        main.main(arguments)
    assert stop.value.code == 2
    assert "already there" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main.main([*arguments, "--overwrite", "--no-verify"])
    assert not stop.value.code
    assert "not checked" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main.main([*arguments, "--overwrite", "--layers", "1"])
    assert not stop.value.code
    assert Encoder.load(tmp_path / "out").backbone.config.num_hidden_layers == 1
    (tmp_path / "kept.txt").write_text("en1 en2 de3\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        main.main([*arguments, "--overwrite", "--vocabulary-of", str(tmp_path / "kept.txt")])
    assert stop.value.code == 2
    assert "a WordLevel tokenizer can't be trimmed" in capsys.readouterr().err
