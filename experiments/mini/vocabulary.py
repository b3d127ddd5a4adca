"""Gives a trained model other pieces of the vocabulary that its backbone had, without training.

    python experiments/mini/vocabulary.py models/mini-last models/multilingual-e5-small \
        --corpus prepared/mini --texts $INTERLINGUA_DATA/lingua_mono --size 153500 \
        -o models/mini-spelled

The vectors of tokens are frozen in training, so the backbone's are those that the model knows. A
corpus with few pairs in a language has few of its pieces, and other texts in that language fall
apart: with 400 pairs Georgian kept 750 of 3,770 pieces, and its texts had 1.6 times as many tokens.
First come all pieces of the scripts and letters below, then those that texts need most often. How
often is the sum of three counts: in the corpus' pairs, in a monolingual archive of its languages
(times 5, for it is small) and in what the backbone's tokenizer was made from (its probabilities,
times 3 million).

Printed is how many tokens each language has in every second line of the archive, against the
backbone's vocabulary. With ``--half`` these lines are not counted, for choosing the factors; the
last run has no such option.
"""

from __future__ import annotations

import argparse
import unicodedata
from pathlib import Path

import numpy as np

from interlingua.corpus.manifest import Manifest
from interlingua.encoder.encoder import Encoder
from interlingua.evaluation.data.folders import full_code
from interlingua.vocabulary.trimming import id_counts
from interlingua.vocabulary.vocabulary import Vocabulary

TABLE = "word_embeddings.weight"
WHOLE_SCRIPTS = {"GEORGIAN", "ARMENIAN", "MALAYALAM"}
"""Scripts of languages with few pairs or none, and of no other language."""
WHOLE_LETTERS = set("әғқңөұүһ")
"""Kazakh's, of which there are 400 pairs."""
OTHER_SCRIPTS = {
    "SINHALA",
    "ETHIOPIC",
    "KANNADA",
    "MYANMAR",
    "GUJARATI",
    "KHMER",
    "ORIYA",
    "GURMUKHI",
    "LAO",
    "BOPOMOFO",
}
"""Scripts of languages for which the model is not made."""
IN_ARCHIVE, IN_BACKBONE = 5, 3_000_000
"""Weights of the counts."""


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("backbone", type=Path, help="the model before its vocabulary was trimmed")
    parser.add_argument(
        "--corpus", type=Path, required=True, help="prepared with the model's vocabulary"
    )
    parser.add_argument("--texts", type=Path, required=True, help="folder of <lang>.txt files")
    parser.add_argument("--size", type=int, required=True, help="pieces to keep")
    parser.add_argument(
        "--half", action="store_true", help="leave out the lines that the report is about"
    )
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    model, backbone = Encoder.load(given.model), Encoder.load(given.backbone)
    archive = lines_of(given.texts, {*Manifest.load(given.corpus).languages, "afr_Latn"})
    counted = [line for lines in archive.values() for line in (lines[::2] if given.half else lines)]
    counts = IN_ARCHIVE * np.asarray(id_counts(backbone.vocabulary, counted))
    counts = counts + corpus_counts(given.corpus, backbone.vocabulary)
    kept = chosen(backbone.vocabulary, model.vocabulary, counts, given.size)
    spelled = respelled(model, backbone, kept)
    spelled.save(given.output)
    for language, lines in archive.items():
        whole, before, after = (
            sum(map(len, vocabulary.encode(lines[1::2])))
            for vocabulary in (backbone.vocabulary, model.vocabulary, spelled.vocabulary)
        )
        print(f"{language}: {before / whole:.3f} times the tokens before, {after / whole:.3f} now")


def lines_of(folder: Path, languages: set[str]) -> dict[str, list[str]]:
    """Read the lines of the archive by language."""
    files = {full_code(path.stem): path for path in sorted(folder.glob("*.txt"))}
    return {
        language: path.read_text(encoding="utf-8").splitlines()
        for language, path in files.items()
        if language in languages
    }


def corpus_counts(corpus: Path, vocabulary: Vocabulary) -> np.ndarray:
    """Count the occurrences of each id in a corpus that was prepared with some of the pieces."""
    ids = {piece: index for index, piece in enumerate(pieces_of(vocabulary))}
    own = [ids[piece] for piece in pieces_of(Vocabulary.load(corpus / "vocabulary"))]
    tokens = np.memmap(corpus / "train" / "tokens.bin", dtype="<u4", mode="r")
    counts = np.zeros(len(ids), dtype=np.int64)
    counts[own] = np.bincount(tokens, minlength=len(own))
    return counts


def chosen(full: Vocabulary, trimmed: Vocabulary, counts: np.ndarray, size: int) -> set[int]:
    """Choose the ids of the full vocabulary to keep.

    Special tokens are among them, and all characters that the trimmed one has.
    """
    pieces = pieces_of(full)
    characters = {piece for piece in pieces_of(trimmed) if len(piece) == 1}
    scripts = [
        {unicodedata.name(letter, "").split(" ")[0] for letter in piece if letter.isalpha()}
        for piece in pieces
    ]
    first = set(full.special_ids) | {
        index
        for index, piece in enumerate(pieces)
        if scripts[index] & WHOLE_SCRIPTS
        or WHOLE_LETTERS & set(piece.lower())
        or piece in characters
    }
    probabilities = np.exp([score for _, score in full.definition["model"]["vocab"]])
    probabilities[[index for index in range(len(pieces)) if scripts[index] & OTHER_SCRIPTS]] = 0
    probabilities[list(full.special_ids)] = 0
    expected = counts + IN_BACKBONE * probabilities / probabilities.sum()
    others = [
        index for index in np.argsort(-expected, kind="stable").tolist() if index not in first
    ]
    return first | set(others[: size - len(first)])


def pieces_of(vocabulary: Vocabulary) -> list[str]:
    """Return the pieces of a Unigram vocabulary, in the order of their ids."""
    return [piece for piece, _ in vocabulary.definition["model"]["vocab"]]


def respelled(model: Encoder, backbone: Encoder, kept: set[int]) -> Encoder:
    """Return the model with the pieces of these ids and their vectors from the backbone."""
    trimmed = backbone.trim(kept)
    trimmed.backbone.load_state_dict(
        model.backbone.state_dict() | {TABLE: trimmed.backbone.state_dict()[TABLE]}
    )
    return model.with_backbone(trimmed.backbone, trimmed.vocabulary)


if __name__ == "__main__":
    main()
