"""Turns a model's space so that its first dimensions hold the most: what a student with ``matryoshka`` is to learn.

    python experiments/mini/rotate.py MODEL TEXTS.txt --prompt "query: " -o OUT

The axes are the principal ones of the texts' vectors. A turn changes no cosine. MODEL ends in a Dense module, such as
``interlingua debias`` writes, which takes the turn in.
"""

import argparse
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import interlingua

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model", type=Path)
parser.add_argument("texts", type=Path)
parser.add_argument("--prompt", default="")
parser.add_argument("-o", "--output", type=Path, required=True)
arguments = parser.parse_args()

texts = arguments.texts.read_text(encoding="utf-8").splitlines()
vectors = interlingua.load(arguments.model).encode([arguments.prompt + text for text in texts])
axes = np.linalg.svd(vectors, full_matrices=False)[2]
shutil.copytree(arguments.model, arguments.output)
weights = arguments.output / "3_Dense" / "model.safetensors"
dense = load_file(weights)
turn = torch.from_numpy(axes).float()
save_file({name: turn @ tensor for name, tensor in dense.items()}, weights)
energy = (vectors @ axes.T) ** 2
shares = np.cumsum(energy.sum(axis=0)) / energy.sum()
print({width: round(float(shares[width - 1]), 3) for width in (64, 128, 256, 384)})
