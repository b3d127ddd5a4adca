"""Filter a bitext: keep the pairs that are translations, as precise as you ask.

    python examples/filter_a_bitext.py [MODEL]

Half of the pairs here are wrong on purpose. The scores are calibrated on translations that are
trusted, so that ``precision=0.95`` keeps as many pairs as are expected to be 95 % right.
"""

from __future__ import annotations

import random
import sys

import interlingua
import toy


def noisy_bitext() -> list[tuple[str, str, bool]]:
    """Return German, English, and whether the two are translations."""
    rows = toy.sentences(800, seed=11)
    english = [row["en"] for row in rows]
    wrong = random.Random(0).sample(range(len(rows)), len(rows) // 2)
    for place, other in zip(wrong, wrong[1:] + wrong[:1], strict=True):
        english[place] = rows[other]["en"]
    return [(row["de"], text, row["en"] == text) for row, text in zip(rows, english, strict=True)]


def main(model: str) -> None:
    """Calibrate the scores, filter the pairs and count them."""
    bitext = noisy_bitext()
    pairs = [(german, english) for german, english, _ in bitext]
    languages = {"source_language": "de", "target_language": "en"}
    trusted = toy.FOLDER / "trusted.de-en.tsv"
    toy.write_lines(trusted, [f"{row['de']}\t{row['en']}" for row in toy.sentences(300, seed=12)])

    learning = interlingua.score(
        model, pairs, learn="toy/scores.json", parallel=trusted, **languages
    )
    print(*learning.lines, sep="\n")
    filtered = interlingua.score(
        model, pairs, calibration="toy/scores.json", precision=0.95, **languages
    )
    kept = list(filtered)

    right = {(german, english) for german, english, is_right in bitext if is_right}
    for pair in kept[:3]:
        print(f"{pair.columns['probability']:.2f}  {pair.source}  {pair.target}")
    precise = sum((pair.source, pair.target) in right for pair in kept) / len(kept)
    print(
        f"{len(kept)} of {len(pairs)} pairs kept, {precise:.1%} of them right; {len(right)} are"
        " right in all"
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(toy.model()))
