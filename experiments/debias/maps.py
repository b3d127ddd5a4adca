"""Evaluates one encoder with several language maps behind it, embedding every text once.

    interlingua debias MODEL TEXTS... -o maps/project --prompt "query: " --cache cache
    python experiments/debias/maps.py MODEL maps/* --suite mixed_pool,lareqa --prompt "query: " \
        --cache cache -o reports

The vectors of ``--cache``, which evaluate and debias fill too, are mapped as the debiased model
maps them; results are named after the maps' folders and lie below ``reports/results``, for
``interlingua compare``. Where a map was not estimated on some of the languages measured, the means
over only these are printed too, without the map and with it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.language_maps.affine_maps import LanguageMap
from interlingua.encoder.language_maps.language_map_files import read_map
from interlingua.encoder.model_info import ModelInfo, prompt_text
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.cache import CachedEncoder, kept_folder
from interlingua.evaluation.results import result_path
from interlingua.evaluation.scores import SubsetScores, mean_scores
from interlingua.evaluation.suite import evaluate_suite
from interlingua.storage.arrays import normalize_rows


class MappedFromCache:
    """The encoder's kept vectors after a map.

    Args:
        encoder: embeds what is not kept yet.
        info: of the encoder.
        cache: folder of kept vectors.
        language_map: None = the vectors as they are.
        name: as results call it.
    """

    def __init__(
        self,
        encoder: Any,
        info: ModelInfo,
        cache: Path,
        language_map: LanguageMap | None,
        name: str,
    ) -> None:
        self._encoder, self._info, self._cache, self._map = encoder, info, cache, language_map
        self._stores = contextlib.ExitStack()
        self._by_prompt: dict[str, CachedEncoder] = {}
        self.dim, self.settings = encoder.dim, getattr(encoder, "settings", None)
        self.info = replace(info, name=name, digest=None, kept_as=f"{info.identity} {name}")

    def encode(
        self,
        texts: Sequence[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        **_: Any,
    ) -> np.ndarray[Any, Any]:
        """Encode texts to unit vectors."""
        before = prompt_text(self._encoder, prompt)
        if before not in self._by_prompt:
            store = kept_folder(self._info, self._encoder, before, self._cache)
            self._by_prompt[before] = self._stores.enter_context(
                CachedEncoder(self._encoder, prompt=before, kept=store)
            )
        vectors = normalize_rows(self._by_prompt[before].encode(list(texts), language=language))
        return (
            vectors
            if self._map is None
            else self._map.apply(vectors, [language or ""] * len(vectors))
        )

    def close(self) -> None:
        """Close the files of vectors."""
        self._stores.close()


def percent_means(subsets: Sequence[SubsetScores]) -> dict[str, str]:
    """Compute the mean of each metric over languages or pairs, in percent."""
    return {name: f"{100 * value:.2f}" for name, value in mean_scores(subsets).items()}


def unseen(subsets: Sequence[SubsetScores], language_map: LanguageMap) -> list[SubsetScores]:
    """Return the subsets of languages on which the map was not estimated."""
    return [subset for subset in subsets if not set(subset.languages) & set(language_map.languages)]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("maps", nargs="*", type=Path, help="folders written by interlingua debias")
    parser.add_argument("--suite", default="mixed_pool")
    parser.add_argument("--languages")
    parser.add_argument(
        "--prompt", help="one for all texts; default: the model's own of queries and passages"
    )
    parser.add_argument("--backend", default="interlingua")
    parser.add_argument(
        "--set", nargs="*", default=[], help="options of the backend, such as version=0.2.1"
    )
    parser.add_argument("--name", help="the model's name in results; its folder's by default")
    parser.add_argument("--data", type=Path, default=os.environ.get("INTERLINGUA_DATA"))
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--output", "-o", type=Path, default=Path("reports"))
    options = parser.parse_args()
    languages = options.languages.split(",") if options.languages else None
    tasks = build_tasks(
        options.suite.split(","), languages=languages, data=Path(options.data).expanduser()
    )
    chosen = dict(option.split("=", 1) for option in options.set)
    encoder, info = load_encoder(
        options.model, backend=options.backend, name=options.name, options=chosen
    )
    maps = {"as it is": None, **{path.name: read_map(path) for path in options.maps}}
    unmapped: dict[str, Sequence[SubsetScores]] = {}
    for name, language_map in maps.items():
        mapped = MappedFromCache(encoder, info, options.cache, language_map, f"{info.name} {name}")
        for result in evaluate_suite(
            mapped,
            tasks,
            Path(options.data).expanduser(),
            prompt=options.prompt,
            output=options.output,
            model=mapped.info,
            check=False,
        ):
            print(name, result.task, percent_means(result.subsets))
            if language_map is None:
                unmapped[result.task] = result.subsets
            elif 0 < len(few := unseen(result.subsets, language_map)) < len(result.subsets):
                few_unmapped = unseen(unmapped[result.task], language_map)
                print(f"{name}, {len(few)} languages it was not estimated on:", percent_means(few))
                print(f"as it is, the same {len(few)}:", percent_means(few_unmapped))
            print(f"written: {result_path(result, options.output)}", flush=True)
        mapped.close()


if __name__ == "__main__":
    main()
