"""The teacher and the student of the small model, from one debiased model.

    python experiments/mini/start.py DEBIASED BACKBONE TEXTS.txt --teacher OUT --student OUT

The teacher is DEBIASED, turned so that its first dimensions hold the most: what a student with
``matryoshka`` is to learn. The axes are the principal ones of the texts' vectors; a turn changes no
cosine. The student is BACKBONE, the trimmed one, with the teacher's layers behind its pooling: it
starts with the teacher's vectors.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from interlingua.encoder.encoder import Encoder

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("debiased", type=Path)
parser.add_argument("backbone", type=Path)
parser.add_argument("texts", type=Path)
parser.add_argument("--teacher", type=Path, required=True)
parser.add_argument("--student", type=Path, required=True)
arguments = parser.parse_args()

teacher = Encoder.load(arguments.debiased).eval()
vectors = teacher.encode(arguments.texts.read_text(encoding="utf-8").splitlines())
axes = np.linalg.svd(vectors, full_matrices=False)[2]
map_of_language = teacher.post_pooling.dense_layers[-1].linear
with torch.no_grad():
    for part in map_of_language.parameters():
        part.copy_(torch.from_numpy(axes).float() @ part)
teacher.save(arguments.teacher)
student = Encoder.load(arguments.backbone)
student.post_pooling = teacher.post_pooling
student.save(arguments.student)
energy = (vectors @ axes.T) ** 2
shares = np.cumsum(energy.sum(axis=0)) / energy.sum()
print({width: round(float(shares[width - 1]), 3) for width in (64, 128, 256, 384)})
