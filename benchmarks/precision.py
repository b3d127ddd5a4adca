"""Compare the precision that `--precision` promises with the true one, on data with known truth.

    python benchmarks/precision.py mini --data train-mix --work /tmp/precision

Two set-ups of German and English from the training mix:

- ``score``: a noisy bitext of 50,000 pairs, 65.5 % of them right. The others are misaligned (by one
  line, or at random), untranslated copies, truncated targets, targets in another script, and
  nearly empty ones. Trusted pairs are 1,000 of the same kind. ``sorted`` is the same in order of
  length.
- ``mine``: two texts of courses and manual pages, with a quarter of their pairs in both; what
  is left of the others is in only one of them. Trusted pairs are 1,000 short sentences of Tatoeba
  (``other kind``) or 1,000 of the same texts (``same kind``). Of a pair that is in only one text
  nothing may be nearly equal to a text of the other side, so that what is right is known.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from zlib import crc32

import numpy as np
from scipy.sparse import csr_matrix

import interlingua
from interlingua.encoder.backends.load import encode_function

DOMAINS = ("tatoeba_challenge", "debian_ddtp", "ms_courses", "tldr_pages", "freecodecamp")
MINED = ("ms_courses", "tldr_pages", "freecodecamp")
WIDTH = 2**18
WRONG = {
    "misaligned": 0.40,
    "another": 0.12,
    "copy": 0.22,
    "truncated": 0.14,
    "script": 0.06,
    "empty": 0.06,
}
"""Share of each kind among the wrong pairs of the bitext."""
Pair = tuple[str, str]


def read_domain(data: Path, domain: str, languages: str = "de-en") -> list[Pair]:
    """Read the pairs of one domain, in their order."""
    lines = (data / "pairs" / f"{languages}.{domain}.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    return [(row[0].strip(), row[1].strip()) for row in rows if len(row) == 2]


def noisy_bitext(data: Path, size: int, seed: int = 0) -> tuple[list[Pair], set[Pair], list[Pair]]:
    """Make a noisy bitext; return its pairs, all right pairs, and 1,000 trusted pairs."""
    draw = random.Random(seed)
    pairs = [pair for domain in DOMAINS for pair in read_domain(data, domain)]
    right = set(pairs)
    foreign = [pair[1] for pair in read_domain(data, "tatoeba_challenge", "de-ru")]
    pairs = [pair for pair in dict.fromkeys(pairs) if len(pair[0]) > 8 and len(pair[1]) > 8]
    order = list(range(len(pairs)))
    draw.shuffle(order)
    trusted = [pairs[at] for at in order[:1000]]
    rest = [pairs[at] for at in sorted(order[1000:])]
    count = round(0.655 * size)
    kept = set(draw.sample(range(len(rest)), count))
    found = [rest[at] for at in sorted(kept)]
    kinds, weights = zip(*WRONG.items(), strict=True)
    while len(found) < size:
        at = draw.randrange(len(rest))
        source, target = rest[at]
        kind = draw.choices(kinds, weights)[0]
        if kind == "misaligned":
            target = rest[(at + 1) % len(rest)][1]
        elif kind == "another":
            target = draw.choice(rest)[1]
        elif kind == "copy":
            target = source if draw.random() < 0.8 else f"{source} |"
        elif kind == "truncated":
            words = target.split()
            target = " ".join(words[: max(1, round(len(words) * draw.uniform(0.2, 0.6)))])
        elif kind == "script":
            target = draw.choice(foreign)
        else:
            target = draw.choice(["-", "...", "1", "OK", "a", "»", "Home", "2."])
        if (source, target) not in right:
            found.append((source, target))
    draw.shuffle(found)
    return found, right, trusted


def two_texts(
    data: Path, kind: str, seed: int = 0
) -> tuple[list[str], list[str], set[Pair], list[Pair]]:
    """Make two texts to mine; return both, all right pairs, and 1,000 trusted pairs."""
    draw = random.Random(seed)
    right = {pair for domain in DOMAINS for pair in read_domain(data, domain)}
    pairs = [pair for domain in MINED for pair in read_domain(data, domain)]
    pairs = [pair for pair in dict.fromkeys(pairs) if len(pair[0]) > 8 and len(pair[1]) > 8]
    draw.shuffle(pairs)
    same_kind, pairs = pairs[:1000], pairs[1000:]
    shared, alone = pairs[: len(pairs) // 4], pairs[len(pairs) // 4 :]
    near = np.zeros(len(alone), bool)
    for side in (0, 1):
        near |= are_near([pair[side] for pair in alone], [pair[side] for pair in shared])
        # The two halves of the others must not be near either.
        half = len(alone) // 2
        near[:half] |= are_near(
            [pair[side] for pair in alone[:half]], [pair[side] for pair in alone[half:]]
        )
    half = len(alone) // 2
    sources = [pair[0] for pair in shared]
    targets = [pair[1] for pair in shared]
    sources += [pair[0] for pair, is_near in zip(alone[:half], near, strict=False) if not is_near]
    targets += [
        pair[1] for pair, is_near in zip(alone[half:], near[half:], strict=True) if not is_near
    ]
    draw.shuffle(sources)
    draw.shuffle(targets)
    trusted = same_kind
    if kind == "other kind":
        trusted = draw.sample(read_domain(data, "tatoeba_challenge"), 1000)
    return sources, targets, right, trusted


def are_near(texts: list[str], others: list[str]) -> np.ndarray:
    """Mark the texts of which half of the groups of four letters are shared with another text."""

    def groups(some: list[str]) -> csr_matrix:
        rows, columns = [], []
        for row, text in enumerate(some):
            letters = "".join(filter(str.isalnum, text.casefold())) or text
            found = {crc32(letters[at : at + 4].encode()) % WIDTH for at in range(len(letters))}
            rows += [row] * len(found)
            columns += found
        return csr_matrix((np.ones(len(rows)), (rows, columns)), (len(some), WIDTH))

    a, b = groups(texts), groups(others)
    sizes = np.asarray(b.sum(axis=1)).ravel()
    marks = np.zeros(len(texts), bool)
    for start in range(0, len(texts), 1000):
        part = a[start : start + 1000]
        common = (part @ b.T).toarray()
        either = np.asarray(part.sum(axis=1)) + sizes[None] - common
        marks[start : start + 1000] = (common / either).max(axis=1) >= 0.5
    return marks


def remember(model: str, work: Path):
    """Return the encoder as a function that encodes every text once, also over several runs."""
    encode = encode_function(model)
    store = work / f"{Path(model).name}.npz"
    known: dict[str, np.ndarray] = {}
    if store.is_file():
        kept = np.load(store)
        known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    def vectors(texts: list[str], *, language: str | None = None) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            found = encode(new)
            known.update(
                zip(new, found / np.linalg.norm(found, axis=1, keepdims=True), strict=True)
            )
        return np.stack([known[text] for text in texts])

    def save() -> None:
        np.savez(store, texts=np.array(list(known)), vectors=np.stack(list(known.values())))

    return vectors, save


def write_pairs(path: Path, pairs: list[Pair]) -> Path:
    """Write a bitext."""
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return path


def tell(name: str, kept: list[Pair], right: set[Pair], all_right: int, lines: list[str]) -> None:
    """Print the true precision and recall, and the lines of the verb about them."""
    hits = sum(pair in right for pair in kept)
    print(
        f"{name}: true precision {hits / max(1, len(kept)):.3f}, recall"
        f" {hits / all_right:.1%}, {len(kept):,} kept"
    )
    for line in lines:
        if "precision" in line or line.startswith(("warning", "translations", "this share")):
            print(f"    {line}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True, help="folder of the training mix")
    parser.add_argument("--work", type=Path, help="keeps vectors for another run")
    parser.add_argument("--size", type=int, default=50_000, help="pairs of the bitext")
    parser.add_argument("--precision", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=["score", "sorted", "other kind", "same kind"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if options.work:
            options.work.mkdir(parents=True, exist_ok=True)
        encode, save = remember(options.model, options.work or work)
        languages = {"source_language": "de", "target_language": "en"}
        for name in ("score", "sorted"):
            if name not in options.only:
                continue
            pairs, right, trusted = noisy_bitext(options.data, options.size, options.seed)
            if name == "sorted":
                pairs.sort(key=lambda pair: len(pair[0]))
            file = write_pairs(work / "noisy.de-en.tsv", pairs)
            held = write_pairs(work / "trusted.de-en.tsv", trusted)
            learned = interlingua.score(encode, file, learn=work / f"{name}.json", parallel=held)
            print("\n".join(learned.lines))
            scored = interlingua.score(
                encode, file, calibration=work / f"{name}.json", precision=options.precision
            )
            kept = [(pair.source, pair.target) for pair in scored]
            everything = sum(pair in right for pair in pairs)
            tell(name, kept, right, everything, scored.lines)
        for kind in ("other kind", "same kind"):
            if kind not in options.only:
                continue
            sources, targets, right, trusted = two_texts(options.data, kind, options.seed)
            held = write_pairs(work / "trusted.de-en.tsv", trusted)
            sides = []
            for code, texts in (("de", sources), ("en", targets)):
                sides.append(work / f"{kind[:4]}.{code}.txt")
                sides[-1].write_text("\n".join(texts) + "\n", encoding="utf-8")
            calibration = work / f"{kind[:4]}.json"
            learned = interlingua.calibrate(
                encode, *sides, parallel=held, output=calibration, **languages
            )
            print("\n".join(learned.lines))
            found = interlingua.mine(
                encode, *sides, calibration=calibration, precision=options.precision, **languages
            )
            kept = [(pair.source, pair.target) for pair in found]
            known_sources, known_targets = set(sources), set(targets)
            everything = sum(a in known_sources and b in known_targets for a, b in right)
            tell(f"mine {kind}", kept, right, everything, found.lines)
        if options.work:
            save()


if __name__ == "__main__":
    main()
