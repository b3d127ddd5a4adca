"""Model folders that a stranger may send: each name is a change to the files of a good one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

DEEP = "[" * 100_000 + "]" * 100_000
HUGE = int("9" * 400)
PACKAGE = "sentence_transformers.models"
DENSE = "3_Dense"
"""Layer of the model that ``DENSE_CHANGES`` change."""


def config(**changes: Any) -> Callable[[Path], None]:
    return values("config.json", **changes)


def values(name: str, **changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def text(name: str, content: str | bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def tensors(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    def change_file(folder: Path) -> None:
        stored = load_file(folder / "model.safetensors")
        change(stored)
        save_file(stored, folder / "model.safetensors")

    return change_file


def drop_layer(stored: dict[str, torch.Tensor]) -> None:
    for name in [name for name in stored if name.startswith("encoder.layer.1.")]:
        del stored[name]


def drop_norm(stored: dict[str, torch.Tensor]) -> None:
    del stored["encoder.layer.0.output.LayerNorm.weight"]


def add_layer(stored: dict[str, torch.Tensor]) -> None:
    stored.update(
        {
            name.replace("layer.1.", "layer.2."): tensor.clone()
            for name, tensor in stored.items()
            if name.startswith("encoder.layer.1.")
        }
    )


def add_parameter(stored: dict[str, torch.Tensor]) -> None:
    stored["encoder.layer.0.adapter.weight"] = torch.ones(2, 2)


def whole_numbers(stored: dict[str, torch.Tensor]) -> None:
    name = "encoder.layer.0.output.dense.weight"
    stored[name] = stored[name].to(torch.int32)


def module(kind: str, path: str = "") -> str:
    return json.dumps([{"idx": 0, "name": "0", "path": path, "type": kind}])


def modules(*kinds: str) -> str:
    paths = ("1_Pooling" if kind == "Pooling" else "" for kind in kinds)
    return json.dumps(
        [
            {"path": path, "type": f"{PACKAGE}.{kind}"}
            for path, kind in zip(paths, kinds, strict=True)
        ]
    )


def post_processor(folder: Path) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    content["post_processor"] = {
        "type": "BertProcessing",
        "sep": ["x", 4_000_000_000],
        "cls": ["y", 4_000_000_000],
    }
    path.write_text(json.dumps(content))
    (folder / "vocabulary.json").unlink()


def expanded_pickle(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    name = "embeddings.position_embeddings.weight"
    stored[name] = torch.zeros(1).expand(stored[name].shape)
    (folder / "model.safetensors").unlink()
    torch.save(stored, folder / "pytorch_model.bin")


def list_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save([1, 2], folder / "pytorch_model.bin")


def shard_elsewhere(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "elsewhere.safetensors")
    index = {"weight_map": {"embeddings.word_embeddings.weight": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def shape_alone(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    name = "embeddings.position_embeddings.weight"
    stored[name] = stored[name].to("meta")
    (folder / "model.safetensors").unlink()
    torch.save(stored, folder / "pytorch_model.bin")


def two_models(stored: dict[str, torch.Tensor]) -> None:
    stored.update({f"other.{name}": tensor.clone() for name, tensor in stored.items()})


def normalizer(kind: dict[str, Any]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        values("tokenizer.json", normalizer=kind)(folder)
        (folder / "vocabulary.json").unlink()

    return change


GROWING = {"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 100}

CHANGES: dict[str, Callable[[Path], None]] = {
    "pad below 0": config(pad_token_id=-100),
    "pad beyond the vocabulary": config(pad_token_id=10**6),
    "pad huge": config(pad_token_id=HUGE),
    "pad a text": config(pad_token_id="0"),
    "positions used up": config(model_type="xlm-roberta", pad_token_id=119),
    "heads below 0": config(num_attention_heads=-1),
    "heads 0": config(num_attention_heads=0),
    "heads do not divide": config(num_attention_heads=3),
    "heads a fraction": config(num_attention_heads=1.5),
    "layers 10 million": config(num_hidden_layers=10_000_000),
    "layers below 0": config(num_hidden_layers=-1),
    "layers a list": config(num_hidden_layers=[2]),
    "layers fewer than stored": config(num_hidden_layers=1),
    "layers more than stored": config(num_hidden_layers=5),
    "width 0": config(hidden_size=0),
    "width huge": config(hidden_size=2**40),
    "width true": config(hidden_size=True),
    "width other": config(hidden_size=64),
    "inner 0": config(intermediate_size=0),
    "inner a text": config(intermediate_size="64"),
    "vocabulary below 0": config(vocab_size=-5),
    "vocabulary huge": config(vocab_size=2**62),
    "vocabulary smaller": config(vocab_size=3),
    "positions 0": config(max_position_embeddings=0),
    "positions null": config(max_position_embeddings=None),
    "types huge": config(type_vocab_size=10**9),
    "types missing": config(type_vocab_size=2),
    "eps a text": config(layer_norm_eps="small"),
    "eps below 0": config(layer_norm_eps=-1.0),
    "eps not a number": text(
        "config.json", '{"model_type": "bert", "vocab_size": 9, "layer_norm_eps": NaN}'
    ),
    "dropout 2": config(hidden_dropout_prob=2.0),
    "activation a list": config(hidden_act=["gelu"]),
    "activation unknown": config(hidden_act="no"),
    "model type a list": config(model_type=["bert"]),
    "config a list": text("config.json", "[]"),
    "config deep": text("config.json", DEEP),
    "config surrogate": text("config.json", '{"model_type": "\\ud800"}'),
    "config bytes": text("config.json", b"\xff\xfe"),
    "config empty": text("config.json", ""),
    "modules an object": text("modules.json", '{"type": 1}'),
    "modules of texts": text("modules.json", '["Transformer"]'),
    "modules without path": text(
        "modules.json", '[{"type": "sentence_transformers.models.Transformer"}]'
    ),
    "modules number type": text("modules.json", '[{"type": 5, "path": ""}]'),
    "modules outside": text(
        "modules.json", module("sentence_transformers.models.Pooling", "../../etc")
    ),
    "modules deep": text("modules.json", DEEP),
    "modules foreign": text("modules.json", module("os.system")),
    "pooling a list": text("1_Pooling/config.json", "[1]"),
    "pooling number": values("1_Pooling/config.json", pooling_mode=5),
    "pooling list of lists": values("1_Pooling/config.json", pooling_mode=[["mean"]]),
    "limit a text": values("sentence_bert_config.json", max_seq_length="many"),
    "limit below 0": values("sentence_bert_config.json", max_seq_length=-5),
    "limit huge": values("sentence_bert_config.json", max_seq_length=HUGE),
    "prompts a list": values("config_sentence_transformers.json", prompts=["query: "]),
    "prompts numbers": values("config_sentence_transformers.json", prompts={"query": 5}),
    "prompts surrogate": text(
        "config_sentence_transformers.json", '{"prompts": {"query": "\\udc00 "}}'
    ),
    "default prompt a list": values(
        "config_sentence_transformers.json", default_prompt_name=["query"]
    ),
    "our settings a list": values("config_sentence_transformers.json", interlingua=[1]),
    "cut a text": values("config_sentence_transformers.json", truncate_dim="64"),
    "cut to nothing": values("config_sentence_transformers.json", truncate_dim=0),
    "cut below 0": values("config_sentence_transformers.json", truncate_dim=-3),
    "cut to more": values("config_sentence_transformers.json", truncate_dim=60_000),
    "cut a list": values("config_sentence_transformers.json", truncate_dim=[2]),
    "widths a number": values(
        "config_sentence_transformers.json", interlingua={"matryoshka_dims": 64}
    ),
    "widths a text": values(
        "config_sentence_transformers.json", interlingua={"matryoshka_dims": "64"}
    ),
    "widths below 0": values(
        "config_sentence_transformers.json", interlingua={"matryoshka_dims": [-5]}
    ),
    "version a list": values("config_sentence_transformers.json", __version__=[1]),
    "ranges a list": text("int8_ranges.json", "[1]"),
    "ranges null": text("int8_ranges.json", '{"2": null}'),
    "ranges texts": text(
        "int8_ranges.json", '{"2": {"minimum": ["a", "b"], "maximum": ["a", "b"]}}'
    ),
    "ranges one text": text("int8_ranges.json", '{"2": {"minimum": "ab", "maximum": "ab"}}'),
    "ranges not numbers": text("int8_ranges.json", '{"1": {"minimum": [NaN], "maximum": [NaN]}}'),
    "ranges of other widths": text(
        "int8_ranges.json", '{"2": {"minimum": [0], "maximum": [1, 2]}}'
    ),
    "ranges swapped": text("int8_ranges.json", '{"1": {"minimum": [1], "maximum": [-1]}}'),
    "modules none": text("modules.json", "[]"),
    "modules without a transformer": text("modules.json", modules("Pooling")),
    "modules twice": text("modules.json", modules("Transformer", "Pooling", "Pooling")),
    "modules in another order": text(
        "modules.json", modules("Transformer", "Normalize", "Pooling")
    ),
    "modules of another package": text(
        "modules.json", modules("Transformer").replace("sentence_", "my_")
    ),
    "modules with the transformer below": text(
        "modules.json", module(f"{PACKAGE}.Transformer", "1_Pooling")
    ),
    "vocabulary tokens a list": values("vocabulary.json", special_tokens=["<pad>"]),
    "vocabulary tags numbers": values("vocabulary.json", language_tags={"deu_Latn": 5}),
    "vocabulary no digest": values("vocabulary.json", digest=None),
    "vocabulary segmentation a list": values("vocabulary.json", pre_tokenizer=["ems"]),
    "vocabulary format a list": values("vocabulary.json", format=[1]),
    "vocabulary a list": text("vocabulary.json", "[1]"),
    "vocabulary deep": text("vocabulary.json", DEEP),
    "tokenizer deep": text("tokenizer.json", DEEP),
    "tokenizer empty": text("tokenizer.json", "{}"),
    "tokenizer bytes": text("tokenizer.json", b"\xff"),
    "tokenizer other ids": post_processor,
    "tokenizer that grows": normalizer({"type": "Sequence", "normalizers": [GROWING] * 9}),
    "tokenizer map damaged": normalizer(
        {"type": "Precompiled", "precompiled_charsmap": "BAAAAP///wA="}
    ),
    "weights of two models": tensors(two_models),
    "weights a shape alone": shape_alone,
    "weights cut": lambda folder: text(
        "model.safetensors", (folder / "model.safetensors").read_bytes()[:-9]
    )(folder),
    "weights head": text("model.safetensors", b"\xff" * 64),
    "weights empty": text("model.safetensors", b""),
    "weights a layer missing": tensors(drop_layer),
    "weights a norm missing": tensors(drop_norm),
    "weights a layer left over": tensors(add_layer),
    "weights a parameter left over": tensors(add_parameter),
    "weights whole numbers": tensors(whole_numbers),
    "weights expanded": expanded_pickle,
    "weights a list": list_pickle,
    "weights elsewhere": shard_elsewhere,
}
"""Every one of these must be refused, in one line."""


def dense(**changes: Any) -> Callable[[Path], None]:
    return values(f"{DENSE}/config.json", **changes)


def dense_tensors(change: Callable[[dict[str, torch.Tensor]], None]) -> Callable[[Path], None]:
    change_file = tensors(change)
    return lambda folder: change_file(folder / DENSE)


def every(
    change: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[dict[str, torch.Tensor]], None]:
    def change_all(stored: dict[str, torch.Tensor]) -> None:
        stored.update({name: change(tensor) for name, tensor in stored.items()})

    return change_all


DENSE_CHANGES: dict[str, Callable[[Path], None]] = {
    "dense huge": dense(in_features=1 << 20, out_features=1 << 20),
    "dense width true": dense(in_features=True),
    "dense width a text": dense(out_features="32"),
    "dense width a fraction": dense(in_features=32.5),
    "dense width other": dense(in_features=7),
    "dense bias a text": dense(bias="no"),
    "dense bias left over": dense(bias=False),
    "dense activation a list": dense(activation_function=["Tanh"]),
    "dense activation of another package": dense(activation_function="my.package.Tanh"),
    "dense residual": dense(use_residual=True),
    "dense residual a text": dense(use_residual="no"),
    "dense a list": text(f"{DENSE}/config.json", "[1]"),
    "dense deep": text(f"{DENSE}/config.json", DEEP),
    "dense config missing": lambda folder: (folder / DENSE / "config.json").unlink(),
    "dense weights missing": lambda folder: (folder / DENSE / "model.safetensors").unlink(),
    "dense weights head": text(f"{DENSE}/model.safetensors", b"\xff" * 64),
    "dense weights whole numbers": dense_tensors(every(lambda tensor: tensor.to(torch.int32))),
    "dense weights complex": dense_tensors(every(lambda tensor: tensor.to(torch.complex64))),
    "dense weights of another shape": dense_tensors(every(lambda tensor: tensor[:3].contiguous())),
    "dense weights left over": dense_tensors(
        lambda stored: stored.update({"linear.more": torch.ones(2)})
    ),
    "dense weights not numbers": dense_tensors(every(lambda tensor: tensor * float("nan"))),
    "shift bytes": text("language_shift.safetensors", b"\xff" * 40),
}
"""To a model with a dense layer behind the pooling; these must be refused too."""
