"""Sentence splitting: hand-written cases, and real sentences that are joined and found again.

    python benchmarks/split.py                              # the cases of the tests
    python benchmarks/split.py --lines flores200_devtest/*.txt --list more_cases.tsv
    python benchmarks/split.py --lines tatoeba/*.tsv        # the first column of a table
    python benchmarks/split.py --lines *_*.txt --single eng_Latn.txt --only interlingua sentencex

Each case is a text with the sentences that a reader finds in it; it is right if all are found and
nothing else. White space is not compared. A file of lines is named by its language
(``deu_Latn.txt``, ``deu-eng.tsv``): every five lines that end with a mark are joined to a text, and
F1 is that of the borders inside. Lines that hold two sentences count against every splitter; with
``--single`` a line is left out if its translation, the same line of another file, holds two.

Compared are ``interlingua.split`` and those of sentencex, pysbd and ICU (``icu4py``) that are
installed. A splitter without a language uses its English rules. The last line is the ratio of
errors of ``interlingua.split`` and of the best other splitter.
"""

from __future__ import annotations

import argparse
import importlib
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from interlingua.config.languages import resolve_language, written_tag
from interlingua.corpus.segments.sentence_splitting import split

CASES = Path(__file__).parent.parent / "tests" / "corpus" / "segments" / "splitting_cases.tsv"
BORDER = "‖"
JOINED = 5
"""Lines in a text."""
UNSPACED = ("zho", "yue", "jpn")
"""Languages without a space between sentences."""
ENDS = re.compile(r"[.!?…。！？؟۔।॥။។։፧:;།]['\"”’»」』)]*$")
INNER_END = re.compile(r"[.!?…]['\"”’)]*\s+\S")
PYSBD = "am ar bg da de el en es fa fr hi hy it ja kk mr my nl pl ru sk ur zh"

Splitter = Callable[[str, str], Sequence[str]]
Case = tuple[str, str, list[str]]
"""A language, a text, and its sentences."""


def rules(text: str, language: str) -> list[str]:
    """Split with ``interlingua.split``."""
    return split(text, language)


def splitters() -> dict[str, Splitter]:
    """Return the splitters that are installed, by their names."""
    found: dict[str, Splitter] = {"interlingua": rules}
    for name, make in (("sentencex", _sentencex), ("pysbd", _pysbd), ("icu4py", _icu)):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        found[name] = make()
    return found


def _sentencex() -> Splitter:
    import sentencex

    def run(text: str, language: str) -> list[str]:
        return list(sentencex.segment(_short(language), text))

    return run


def _pysbd() -> Splitter:
    import pysbd

    segmenters = {code: pysbd.Segmenter(language=code, clean=False) for code in PYSBD.split()}

    def run(text: str, language: str) -> list[str]:
        code = _short(language)
        return list(segmenters[code if code in segmenters else "en"].segment(text))

    return run


def _icu() -> Splitter:
    from icu4py.breakers import SentenceBreaker

    def run(text: str, language: str) -> list[str]:
        # The rules that leave abbreviations whole.
        breaker = SentenceBreaker(text, f"{_short(language)}@ss=standard")
        # ICU counts in units of UTF-16.
        units = text.encode("utf-16-le")
        return [units[2 * a : 2 * b].decode("utf-16-le") for a, b in breaker.segments()]

    return run


def _short(language: str) -> str:
    """Return the code of BCP 47: ``de`` for ``deu``."""
    return written_tag(resolve_language(language).code).split("-")[0]


def read_cases(path: Path) -> Iterator[Case]:
    """Read cases: a language, a kind, and a text with a border before each further sentence."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    for line in lines:
        language, _, text = line.split("\t")
        text = text.replace(r"\n", "\n")
        yield language, text.replace(BORDER, ""), text.split(BORDER)


def read_counts(path: Path) -> Iterator[tuple[str, str, int]]:
    """Read cases of which only the number of sentences is known."""
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        language, text, count = line.split("\t")
        yield language, text, int(count)


def numbers_of_two(path: Path) -> set[int]:
    """Return the numbers of lines, in English, that seem to hold two sentences."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines) if INNER_END.search(line)}


def read_lines(path: Path, left_out: set[int]) -> Iterator[Case]:
    """Join real sentences, five at a time."""
    language = re.split(r"[-.]", path.name)[0]
    lines = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        if number in left_out:
            continue
        sentence = line.split("\t")[0].strip().strip("\u200b")
        if ENDS.search(sentence) or language.startswith(("tha", "lao", "bod")):
            lines.append(sentence)
    space = "" if language.startswith(UNSPACED) else " "
    for first in range(0, len(lines) - JOINED + 1, JOINED):
        part = lines[first : first + JOINED]
        yield language, space.join(part), part


def borders(sentences: Iterable[str]) -> set[int]:
    """Return the numbers of visible characters before each border inside of a text."""
    found = []
    count = 0
    for sentence in sentences:
        count += len("".join(sentence.split()))
        found.append(count)
    return set(found[:-1])


def f1(cases: Sequence[Case], run: Splitter) -> float:
    """Return F1 of the borders of all texts together."""
    right = expected = found = 0
    for language, text, sentences in cases:
        gold = borders(sentences)
        got = borders(run(text, language))
        right += len(gold & got)
        expected += len(gold)
        found += len(got)
    return 2 * right / max(expected + found, 1)


def same(found: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether two lists of sentences are equal, white space aside."""
    return ["".join(s.split()) for s in found if s.strip()] == [
        "".join(s.split()) for s in expected
    ]


def compare_cases(runs: dict[str, Splitter], *, show: str | None) -> dict[str, float]:
    """Print how many cases each splitter has right; return the shares of wrong ones."""
    cases = list(read_cases(CASES))
    wrong: dict[str, float] = {}
    print(f"{len(cases)} cases in {len({case[0] for case in cases})} languages")
    for name, run in runs.items():
        missed = [case for case in cases if not same(run(case[1], case[0]), case[2])]
        wrong[name] = len(missed) / len(cases)
        print(f"{name:12} {len(cases) - len(missed):4} right  {1 - wrong[name]:.1%}")
        if name == show:
            for language, text, _ in missed:
                print(f"  {language}: {' | '.join(run(text, language))!r}")
    return wrong


def compare_counts(runs: dict[str, Splitter], path: Path, *, show: str | None) -> None:
    """Print for how many texts each splitter finds the right number of sentences."""
    cases = list(read_counts(path))
    for name, run in runs.items():
        missed = [case for case in cases if len(run(case[1], case[0])) != case[2]]
        print(f"{name:12} {len(cases) - len(missed)} of {len(cases)} numbers right in {path.name}")
        if name == show:
            for language, text, _ in missed:
                print(f"  {language}: {' | '.join(run(text, language))!r}")


def compare_lines(
    runs: dict[str, Splitter], paths: Sequence[Path], single: Path | None
) -> dict[str, float]:
    """Print F1 of each splitter per language, and its time; return 1 - the mean F1."""
    scores: dict[str, list[float]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    characters = 0
    left_out = numbers_of_two(single) if single else set()
    print(f"{'F1':12} " + " ".join(f"{name:>12}" for name in runs))
    for path in paths:
        cases = list(read_lines(path, left_out))
        if not cases:
            continue
        characters += sum(len(case[1]) for case in cases)
        for name, run in runs.items():
            started = time.process_time()
            scores[name].append(f1(cases, run))
            seconds[name] += time.process_time() - started
        print(f"{path.stem:12} " + " ".join(f"{scores[name][-1]:12.3f}" for name in runs))
    means = {name: sum(values) / len(values) for name, values in scores.items()}
    print(f"{'mean':12} " + " ".join(f"{means[name]:12.4f}" for name in runs))
    rates = [characters / seconds[name] / 1e6 for name in runs]
    print(f"{'million/s':12} " + " ".join(f"{rate:12.2f}" for rate in rates))
    return {name: 1 - mean for name, mean in means.items()}


def main() -> None:
    """Compare the splitters on what is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", nargs="*", type=Path, default=[], help="a sentence per line")
    parser.add_argument("--list", type=Path, help="language TAB text TAB number of sentences")
    parser.add_argument("--show", help="print what this splitter has wrong")
    parser.add_argument("--single", type=Path, help="leave out lines that hold two in this file")
    parser.add_argument("--only", nargs="*", help="splitters to compare")
    arguments = parser.parse_args()
    runs = {
        name: run
        for name, run in splitters().items()
        if arguments.only is None or name in arguments.only
    }
    errors = [("cases", compare_cases(runs, show=arguments.show))]
    if arguments.list:
        compare_counts(runs, arguments.list, show=arguments.show)
    if arguments.lines:
        errors.append(("joined lines", compare_lines(runs, arguments.lines, arguments.single)))
    for name, wrong in errors:
        own = wrong.pop("interlingua")
        if wrong:
            best = min(wrong, key=lambda other: wrong[other])
            ratio = own / max(wrong[best], 1e-9)
            print(f"{name}: {ratio:.2f} of the errors of {best}")


if __name__ == "__main__":
    main()
