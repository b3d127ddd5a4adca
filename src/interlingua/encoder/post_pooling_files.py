"""Dense layers after pooling in a model directory: read and written as sentence-transformers' own modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interlingua.encoder.directory import modules_after_pooling, read_json, write_json
from interlingua.encoder.post_pooling import Activation, Dense, Normalize, PostPooling
from interlingua.encoder.weights import read_weights
from interlingua.errors import CheckpointError, ConfigError

ACTIVATION_CLASSES: dict[Activation, str] = {
    "identity": "torch.nn.modules.linear.Identity",
    "tanh": "torch.nn.modules.activation.Tanh",
    "relu": "torch.nn.modules.activation.ReLU",
    "gelu": "torch.nn.modules.activation.GELU",
    "silu": "torch.nn.modules.activation.SiLU",
    "sigmoid": "torch.nn.modules.activation.Sigmoid",
}
"""By our name, the class that sentence-transformers writes into a Dense module's ``config.json``."""
MAX_FEATURES = 1 << 20
"""A wider layer than this is taken for a damaged file."""


def write_post_pooling(layers: PostPooling, folder: Path) -> None:
    """Writes ``config.json`` and ``model.safetensors`` of the Dense modules that ``modules.json`` lists.

    Args:
        layers: what stands after pooling.
        folder: of the model, with its ``modules.json``.
    """
    from safetensors.torch import save_file

    for layer, (path, _) in zip(layers, modules_after_pooling(folder), strict=False):  # the last Normalize has no layer
        if not isinstance(layer, Dense):
            continue
        linear = layer.linear
        described = {
            "in_features": linear.in_features,
            "out_features": linear.out_features,
            "bias": linear.bias is not None,
            "activation_function": ACTIVATION_CLASSES[layer.activation],
        }
        write_json(folder / path / "config.json", described)
        tensors = {f"linear.{name}": tensor.detach().cpu().contiguous() for name, tensor in linear.state_dict().items()}
        weight_file = folder / path / "model.safetensors"
        save_file(tensors, weight_file, metadata={"format": "pt"})
        weight_file.chmod((folder / path / "config.json").stat().st_mode)  # safetensors lets only its owner read it


def read_post_pooling(folder: Path, pooled_dim: int) -> PostPooling:
    """Reads what stands after pooling, without a last Normalize, which is one of the encoder's settings.

    Args:
        folder: of the model.
        pooled_dim: width of pooled vectors.

    Raises:
        CheckpointError: a file is missing or damaged, or a layer has an option that is not supported.
    """
    modules = modules_after_pooling(folder)
    if modules and modules[-1][1] == "Normalize":
        modules = modules[:-1]
    layers = [Normalize() if kind == "Normalize" else _read_dense(folder / path) for path, kind in modules]
    try:
        chain = PostPooling(layers)
        chain.output_dim(pooled_dim)
    except ConfigError as error:
        raise CheckpointError(f"{folder}: {error}") from error
    return chain


def _read_dense(folder: Path) -> Dense:
    values = read_json(folder / "config.json")
    if values.get("use_residual") or values.get("module_input_name", "sentence_embedding") != "sentence_embedding":
        raise CheckpointError(f"{folder}: a Dense module with a residual or with another input is not supported")
    layer = Dense(
        _features(values, "in_features", folder),
        _features(values, "out_features", folder),
        bias=values.get("bias", True) is not False,
        activation=_activation(values, folder),
    )
    stored = read_weights(folder)
    for name, blank in layer.linear.state_dict().items():
        tensor = stored.get(f"linear.{name}")
        if tensor is None or tensor.shape != blank.shape:
            found = "missing" if tensor is None else f"of shape {tuple(tensor.shape)}"
            raise CheckpointError(f"{folder}: linear.{name} is {found}, expected the shape {tuple(blank.shape)}")
        getattr(layer.linear, name).data = tensor.float()
    return layer


def _features(values: dict[str, Any], key: str, folder: Path) -> int:
    size = values.get(key)
    if type(size) is not int or not 1 <= size <= MAX_FEATURES:
        raise CheckpointError(
            f"{folder / 'config.json'}: {key} is {size!r}, expected a number from 1 to {MAX_FEATURES}"
        )
    return size


def _activation(values: dict[str, Any], folder: Path) -> Activation:
    written = str(values.get("activation_function", ACTIVATION_CLASSES["tanh"]))
    by_class = {path.rsplit(".", 1)[-1]: name for name, path in ACTIVATION_CLASSES.items()}
    name = by_class.get(written.rsplit(".", 1)[-1])
    if name is None:
        raise CheckpointError(
            f"{folder}: activation {written!r} is not supported; supported are {', '.join(ACTIVATION_CLASSES)}"
        )
    return name
