"""``interlingua.export`` and ``interlingua export`` write the same directory."""

from __future__ import annotations

import pytest

import interlingua
from interlingua.errors import ConfigError
from tests.cli.verbs.test_export import model as model

pytest.importorskip("sentence_transformers")


def test_function_and_command_line_write_equal_weights(done, model, tmp_path):
    done(f"export {model} -o {tmp_path}/a --license MIT --layers 1")
    done = interlingua.export(model, output=tmp_path / "b", license="MIT", layers=1, name="a")
    assert done.verification.minimum == pytest.approx(1)
    for path in (tmp_path / "a").rglob("*.safetensors"):
        assert (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes() == path.read_bytes()
    again = interlingua.export(model, output=tmp_path / "b", layers=1, overwrite=True, verify=False)
    assert again.verification is None


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"static": True}, "--corpus"),
        ({"static": True, "onnx": True}, "--onnx"),
        ({"verify_only": True, "int8": True}, "--int8"),
        ({"dim": 3}, "--dim"),
    ],
)
def test_what_does_not_go_together_is_refused(model, tmp_path, options, match):
    with pytest.raises(ConfigError, match=match):
        interlingua.export(model, output=tmp_path / "a", **options)
