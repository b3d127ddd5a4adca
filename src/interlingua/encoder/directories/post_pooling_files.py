"""Dense layers after pooling in a model directory, as sentence-transformers' own modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interlingua.config import shorten_value
from interlingua.encoder.directories.model_directory import (
    modules_after_pooling,
    read_json,
    write_model_json,
)
from interlingua.encoder.modeling.meta_device import meta_device
from interlingua.encoder.modeling.weights import read_weights
from interlingua.encoder.post_pooling import Activation, Dense, Normalize, PostPooling
from interlingua.errors import CheckpointError, ConfigError
from interlingua.storage.tensor_files import write_safetensors
from interlingua.vocabulary.model_files import DenseFile

ACTIVATION_CLASSES: dict[Activation, str] = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "silu": "torch.nn.modules.activation.SiLU",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
}
"""Our name -> the class that sentence-transformers writes into a Dense module's ``config.json``."""
SENTENCE = "sentence_embedding"
"""Name that sentence-transformers gives to a module's input if it is the pooled vector."""


def write_post_pooling(layers: PostPooling, folder: Path) -> None:
    """Write ``config.json`` and ``model.safetensors`` of the listed Dense modules.

    Args:
        layers: the layers after pooling.
        folder: of the model, with its ``modules.json``.
    """
    # The last Normalize of the list, which is one of the encoder's settings, has no layer here.
    for layer, (path, _) in zip(layers, modules_after_pooling(folder), strict=False):
        if not isinstance(layer, Dense):
            continue
        linear = layer.linear
        described = {
            "in_features": linear.in_features,
            "out_features": linear.out_features,
            "bias": linear.bias is not None,
            "activation_function": ACTIVATION_CLASSES[layer.activation],
        }
        write_model_json(folder / path / "config.json", described)
        tensors = {
            f"linear.{name}": tensor.detach().cpu().contiguous()
            for name, tensor in linear.state_dict().items()
        }
        write_safetensors(folder / path / "model.safetensors", tensors, {"format": "pt"})


def read_post_pooling(folder: Path, pooled_dim: int) -> PostPooling:
    """Read the layers after pooling.

    A last Normalize is left out, since it is one of the encoder's settings.

    Args:
        folder: of the model.
        pooled_dim: width of pooled vectors.

    Raises:
        CheckpointError: a file is missing or damaged, or a layer has an option that is not
            supported.
    """
    modules = modules_after_pooling(folder)
    if modules and modules[-1][1] == "Normalize":
        modules = modules[:-1]
    layers: list[Dense | Normalize] = []
    for path, kind in modules:
        if kind == "Normalize":
            layers.append(Normalize())
        else:
            layers.append(_read_dense(folder / path))
    try:
        chain = PostPooling(layers)
        chain.output_dim(pooled_dim)
    except ConfigError as error:
        raise CheckpointError(f"{folder}: {error}") from error
    return chain


def check_cut(truncate_dim: int | None, width: int, folder: Path) -> None:
    """Refuse a model that cuts its vectors to more elements than they have.

    Raises:
        CheckpointError: ``truncate_dim`` is larger than ``width``.
    """
    if truncate_dim is not None and truncate_dim > width:
        raise CheckpointError(
            f"{folder}: truncate_dim is {truncate_dim}, but the vectors have {width} elements;"
            " download the model again"
        )


def _read_dense(folder: Path) -> Dense:
    values = read_json(folder / "config.json", schema=DenseFile)
    if values.get("use_residual") or (values.get("module_input_name") or SENTENCE) != SENTENCE:
        raise CheckpointError(
            f"{folder}: a Dense module with a residual or another input is not supported; use"
            " another model"
        )
    # Made without memory: config.json states the layer's size, which the weight file must match.
    with meta_device():
        layer = Dense(
            values["in_features"],
            values["out_features"],
            bias=values.get("bias") is not False,
            activation=_activation(values, folder),
        )
    expected = {f"linear.{name}": blank.shape for name, blank in layer.linear.state_dict().items()}
    stored = read_weights(folder)
    for name, shape in expected.items():
        tensor = stored.get(name)
        if tensor is None or tensor.shape != shape:
            found = "missing"
            if tensor is not None:
                found = f"of shape {tuple(tensor.shape)}"
            raise CheckpointError(
                f"{folder}: {name} is {found}, expected shape {tuple(shape)}; download the model"
                " again"
            )
        if not tensor.is_floating_point():
            raise CheckpointError(
                f"{folder}: {name} is {tensor.dtype}, expected floating-point numbers; download"
                " the model again"
            )
    left_over = sorted(stored.keys() - expected.keys())
    if left_over:
        raise CheckpointError(
            f"{folder}: the weight {left_over[0][:100]} is not expected by config.json; download"
            " the model again"
        )
    tensors = {name.removeprefix("linear."): tensor.float() for name, tensor in stored.items()}
    layer.linear.load_state_dict(tensors, assign=True)
    layer.requires_grad_(True)
    return layer


def _activation(values: dict[str, Any], folder: Path) -> Activation:
    # tanh is the default of sentence-transformers.
    written = values.get("activation_function") or ACTIVATION_CLASSES["tanh"]
    by_class = {path.rpartition(".")[2]: name for name, path in ACTIVATION_CLASSES.items()}
    # Only the name of the class is compared, since torch exports a class from several modules
    # (torch.nn.Tanh). A class of another library is never imported.
    name: Activation | None = None
    if written.startswith("torch.nn."):
        name = by_class.get(written.rpartition(".")[2])
    if name is None:
        raise CheckpointError(
            f"{folder}: activation {shorten_value(written)} is not supported; use one of:"
            f" {', '.join(ACTIVATION_CLASSES)}"
        )
    return name
