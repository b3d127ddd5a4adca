"""Effects of a language map and balanced rankings in an index of many languages.

The index is XQuAD-R, all languages in one pool.

    python experiments/search/fairness.py MODEL MAP --cache cache --folder indexes

MAP is a folder that ``interlingua debias`` wrote for MODEL; without it only the plain vectors are
searched. Every question is searched plainly, with ``per_language = 2``, and with that and
``mode = "feedback"``, each time for 100 passages, and all measures are of these: MRR within the
question's language is of those passages of the 100 that are in it. The passages are XQuAD-R's
sentences; each question has a right one in every language.

An index compares a question with all vectors. So does one product of matrices in memory, which
takes less time for each of 13,000 questions and is used here. ``--checked`` questions are searched
in an index on disk as well, and the run ends if that finds other passages.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import resolve_language
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.language_maps.affine_maps import LanguageMap
from interlingua.encoder.language_maps.language_map_files import read_map
from interlingua.evaluation.cache import CachedEncoder, kept_folder
from interlingua.evaluation.data.retrieval import RetrievalSet, answer_sentence_sets
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex
from interlingua.retrieval.ranking import Hit
from interlingua.retrieval.searcher import Searcher
from interlingua.storage.arrays import normalize_rows

DEPTH = 20
"""Hits to read the languages of, as in the task lareqa."""
MRR_DEPTH = 100
PER_LANGUAGE = 2


class Question(NamedTuple):
    """A question, and what answers it."""

    text: str
    language: str
    right: dict[str, set[str]]
    """Ids of the right passages by language."""


def right_passages(sets: Mapping[str, RetrievalSet], name: str) -> dict[str, set[str]]:
    """Return the ids of a question's right passages by language. All share the question's name."""
    return {
        code: {f"{code} {passage}" for passage in found.qrels.get(name, ())}
        for code, found in sets.items()
    }


class VectorTable:
    """Exact search in memory, with the methods of ``PassageIndex`` that a search by vectors calls.

    Args:
        passages: those of a language one after another.
        vectors: of length 1.
    """

    def __init__(self, passages: Sequence[Passage], vectors: Float32[ndarray, "n d"]) -> None:
        self.passages = passages
        self._vectors = vectors
        self._question: Float32[ndarray, " d"] | None = None
        self._cosines: Float32[ndarray, " n"] = np.zeros(0, dtype=np.float32)
        self._rows = {passage.id: row for row, passage in enumerate(passages)}
        self._blocks: dict[str, slice] = {}
        for row, passage in enumerate(passages):
            first = self._blocks.get(passage.language, slice(row, row)).start
            self._blocks[passage.language] = slice(first, row + 1)

    def languages(self) -> dict[str, int]:
        """Count the passages by language."""
        return {code: block.stop - block.start for code, block in self._blocks.items()}

    def nearest(
        self,
        vector: Float32[ndarray, " d"],
        top: int,
        *,
        languages: Sequence[str] = (),
        where: str | None = None,
        exact: bool = True,
    ) -> list[Hit]:
        """Find the nearest passages. ``where`` and ``exact`` have no effect."""
        if vector is not self._question:  # a question is searched in many ways, one after another
            self._question = vector
            self._cosines = self._vectors @ vector
        blocks = [self._blocks[code] for code in languages] or [slice(0, len(self.passages))]
        scores = np.concatenate([self._cosines[block] for block in blocks])
        rows = np.concatenate([np.arange(block.start, block.stop) for block in blocks])
        best = np.argpartition(-scores, min(top, len(scores) - 1))[:top]
        found = [(float(scores[i]), self.passages[rows[i]]) for i in best]
        hits = [
            Hit(passage.id, score, passage.text, passage.title, passage.language, "")
            for score, passage in found
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def vectors(self, ids: Sequence[str]) -> Float32[ndarray, "n d"]:
        """Return the vectors of passages by id."""
        return self._vectors[[self._rows[name] for name in ids]]

    def on_disk(self, folder: Path, settings: IndexSettings) -> PassageIndex:
        """Build an index of the same passages and vectors on disk."""
        index = PassageIndex.create(folder, settings)
        index.add(self.passages, lambda block: self.vectors([passage.id for passage in block]))
        return index


def searcher_of(index: VectorTable | PassageIndex) -> Searcher:
    """Build the product's search in an index.

    Questions are passed as vectors, so that it needs no model.
    """
    return Searcher(cast(PassageIndex, index), cast(Any, None))


def rankings_of(searcher: Searcher, vector: Float32[ndarray, " d"]) -> dict[str, list[Hit]]:
    """Return the rankings to compare, by the suffix of the measure's name."""
    given: Any = {"top": MRR_DEPTH, "exact": True}
    balanced: Any = {**given, "per_language": PER_LANGUAGE}
    return {
        "": searcher.rank("", vector, **given).hits,
        f", {PER_LANGUAGE} of each language": searcher.rank("", vector, **balanced).hits,
        f", {PER_LANGUAGE} of each language with feedback": searcher.rank(
            "", vector, mode="feedback", **balanced
        ).hits,
    }


def require_equal(table: VectorTable, index: PassageIndex, vectors: Sequence[ndarray]) -> None:
    """End the run if the index on disk finds other passages.

    Equal but for two of nearly the same cosine.
    """
    in_memory = searcher_of(table)
    on_disk = searcher_of(index)
    for vector in vectors:
        ours = rankings_of(in_memory, vector)
        for way, hits in rankings_of(on_disk, vector).items():
            others = ours[way]
            scores = np.array([[hit.score for hit in ranking] for ranking in (hits, others)])
            same = sum(a.id == b.id for a, b in zip(hits, others, strict=True))
            if np.abs(scores[0] - scores[1]).max() > 1e-5 or same < 0.9 * len(hits):
                raise SystemExit(f"the index on disk finds other passages{way}")


def reciprocal_rank(hits: Sequence[Hit], right: set[str]) -> float:
    """Return 1 / rank of the first right passage, or 0 if there is none."""
    return next((1 / rank for rank, hit in enumerate(hits, start=1) if hit.id in right), 0.0)


def recall(hits: Sequence[Hit], right: set[str]) -> float:
    """Share of the right passages among the first hits."""
    return sum(hit.id in right for hit in hits[:DEPTH]) / len(right)


def scores_of(
    table: VectorTable, vectors: Float32[ndarray, "n d"], questions: Sequence[Question]
) -> dict[str, float]:
    """Compute the mean of every measure over the questions, in percent."""
    scores: dict[str, list[float]] = defaultdict(list)
    searcher = searcher_of(table)
    for vector, question in zip(vectors, questions, strict=True):
        code = question.language
        own = question.right[code]
        everywhere = set().union(*question.right.values())
        for way, hits in rankings_of(searcher, vector).items():
            scores[f"recall@{DEPTH} of answers in other languages{way}"].append(
                recall(hits, everywhere - own)
            )
            first = reciprocal_rank(hits, everywhere)
            scores[f"MRR@{MRR_DEPTH} of the first answer in any language{way}"].append(first)
            within = [hit for hit in hits if hit.language == code]
            scores[f"MRR@{MRR_DEPTH} within the question's language{way}"].append(
                reciprocal_rank(within, own)
            )
    return {measure: 100 * float(np.mean(values)) for measure, values in scores.items()}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("map", type=Path, nargs="?", help="folder written by interlingua debias")
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("INTERLINGUA_DATA", ".")) / "xquad_r"
    )
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="of the indexes; removed first")
    parser.add_argument("--questions", type=int, help="of each language; all by default")
    parser.add_argument(
        "--checked", type=int, default=20, help="questions that are searched on disk too"
    )
    parser.add_argument("--query-prompt", default="query: ")
    parser.add_argument("--passage-prompt", default="passage: ")
    parser.add_argument("--dtype", help="to compute in: float32 by default")
    options = parser.parse_args()

    encoder, info = load_encoder(options.model, dtype=options.dtype)

    def cached(prompt: str) -> CachedEncoder:
        return CachedEncoder(
            encoder, prompt=prompt, kept=kept_folder(info, encoder, prompt, options.cache)
        )

    sets = {
        resolve_language(spelled).code: read()
        for spelled, read in answer_sentence_sets(options.data).items()
    }
    passages: list[Passage] = []
    questions: list[Question] = []
    for code, found in sets.items():
        passages += [
            Passage(f"{code} {passage.id}", passage.text, language=code)
            for passage in found.passages()
        ]
        names = sorted(found.queries)
        if options.questions is not None:
            names = random.Random(0).sample(names, min(options.questions, len(names)))
        questions += [
            Question(found.queries[name], code, right_passages(sets, name)) for name in names
        ]

    with (
        cached(options.passage_prompt) as passage_store,
        cached(options.query_prompt) as question_store,
    ):
        passage_vectors = normalize_rows(
            passage_store.encode([passage.text for passage in passages])
        )
        question_vectors = normalize_rows(
            question_store.encode([question.text for question in questions])
        )
    codes = sorted({passage.language for passage in passages})
    checked = random.Random(0).sample(range(len(questions)), min(options.checked, len(questions)))
    shutil.rmtree(options.folder, ignore_errors=True)
    maps: dict[str, LanguageMap | None] = {"plain": None}
    if options.map is not None:
        maps["map"] = read_map(options.map)
    for name, language_map in maps.items():
        table = VectorTable(
            passages,
            passage_vectors if language_map is None else language_map.apply(passage_vectors),
        )
        vectors = question_vectors if language_map is None else language_map.apply(question_vectors)
        if checked:
            settings = IndexSettings(
                model=options.model, digest=info.digest or "", dim=encoder.dim, map_digest=name
            )
            index = table.on_disk(options.folder / name, settings)
            require_equal(table, index, [vectors[row] for row in checked])
        for measure, value in scores_of(table, vectors, questions).items():
            print(f"{name:<6} {measure:<78} {value:5.1f}", flush=True)
    print(f"{len(questions):,} questions, {len(passages):,} passages in {len(codes)} languages")


if __name__ == "__main__":
    main()
