"""What a language map and balanced rankings change in an index of many languages: XQuAD-R, all languages in one pool.

    python experiments/search/fairness.py MODEL MAP --cache cache --folder indexes --questions 100

MAP is a folder that ``interlingua debias`` wrote for MODEL. Two indexes are built, with and without the map, and every
question is searched in both, plainly, with ``per_language = 2``, and with that and ``mode = "feedback"``; the last
measure is of the search with the question's language as ``languages``, in which feedback changes nothing. The passages
are XQuAD-R's sentences; each question has a right one in every language.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from interlingua.arrays import normalize_rows
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.language_map_files import read_map
from interlingua.encoder.language_maps import LanguageMap
from interlingua.evaluation.cache import CachedEncoder, kept_folder
from interlingua.evaluation.data.retrieval import RetrievalSet, answer_sentence_sets
from interlingua.languages import resolve
from interlingua.search.feedback import rankings_with_feedback
from interlingua.search.passage_files import Passage
from interlingua.search.passage_index import IndexSettings, PassageIndex
from interlingua.search.ranking import Hit, merged

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
    """Ids of a question's right passages by language; it has the same name in all of them."""
    return {code: {f"{code} {passage}" for passage in found.qrels.get(name, ())} for code, found in sets.items()}


def reciprocal_rank(hits: Sequence[Hit], right: set[str]) -> float:
    """1 / rank of the first right passage; 0 if there is none."""
    return next((1 / rank for rank, hit in enumerate(hits, start=1) if hit.id in right), 0.0)


def recall(hits: Sequence[Hit], right: set[str]) -> float:
    """Share of the right passages among the first hits."""
    return sum(hit.id in right for hit in hits[:DEPTH]) / len(right)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("map", type=Path, help="folder written by interlingua debias")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("INTERLINGUA_DATA", ".")) / "xquad_r")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="of the indexes; removed first")
    parser.add_argument("--questions", type=int, default=100, help="of each language")
    parser.add_argument("--query-prompt", default="query: ")
    parser.add_argument("--passage-prompt", default="passage: ")
    options = parser.parse_args()

    encoder, info = load_encoder(options.model)

    def cached(prompt: str) -> CachedEncoder:
        return CachedEncoder(encoder, prompt=prompt, kept=kept_folder(info, encoder, prompt, options.cache))

    sets = {resolve(spelled).code: read() for spelled, read in answer_sentence_sets(options.data).items()}
    passages: list[Passage] = []
    questions: list[Question] = []
    for code, found in sets.items():
        passages += [Passage(f"{code} {passage.id}", passage.text, language=code) for passage in found.passages()]
        names = random.Random(0).sample(sorted(found.queries), min(options.questions, len(found.queries)))
        questions += [Question(found.queries[name], code, right_passages(sets, name)) for name in names]

    with cached(options.passage_prompt) as passage_store, cached(options.query_prompt) as question_store:
        passage_vectors = normalize_rows(passage_store.encode([passage.text for passage in passages]))
        question_vectors = normalize_rows(question_store.encode([question.text for question in questions]))
    rows = {passage.id: row for row, passage in enumerate(passages)}
    codes = sorted({passage.language for passage in passages})
    shutil.rmtree(options.folder, ignore_errors=True)
    maps: dict[str, LanguageMap | None] = {"plain": None, "map": read_map(options.map)}
    for name, language_map in maps.items():
        settings = IndexSettings(model=options.model, digest=info.digest or "", dim=encoder.dim, map_digest=name)
        index = PassageIndex.create(options.folder / name, settings)
        mapped = passage_vectors if language_map is None else language_map.apply(passage_vectors)
        vectors = question_vectors if language_map is None else language_map.apply(question_vectors)
        index.add(passages, lambda block, table=mapped: table[[rows[passage.id] for passage in block]])
        scores: dict[str, list[float]] = defaultdict(list)
        for vector, question in zip(vectors, questions, strict=True):
            code = question.language
            own = question.right[code]
            everywhere = set().union(*question.right.values())
            plain = index.nearest(vector, MRR_DEPTH)
            parts = [index.nearest(vector, PER_LANGUAGE, languages=[other]) for other in codes]
            fed_back = rankings_with_feedback(index, vector, PER_LANGUAGE, codes)
            rankings = {"": plain, f", {PER_LANGUAGE} of each language": merged(parts, MRR_DEPTH)}
            rankings[f", {PER_LANGUAGE} of each language with feedback"] = merged(fed_back, MRR_DEPTH)
            for way, hits in rankings.items():
                scores[f"recall@{DEPTH} of answers in other languages{way}"].append(recall(hits, everywhere - own))
                scores[f"MRR@{MRR_DEPTH} of the first answer in any language{way}"].append(
                    reciprocal_rank(hits, everywhere)
                )
            alone = index.nearest(vector, MRR_DEPTH, languages=[code])
            scores[f"MRR@{MRR_DEPTH} within the question's language"].append(reciprocal_rank(alone, own))
        for measure, values in scores.items():
            print(f"{name:<6} {measure:<78} {100 * np.mean(values):5.1f}", flush=True)
    print(f"{len(questions):,} questions, {len(passages):,} passages in {len(codes)} languages")


if __name__ == "__main__":
    main()
