"""One target per reader: bytes in, and nothing but an error of ours may come out.

``python -m tests.hostile.fuzz.readers TARGET SECONDS`` runs one under atheris, which looks for
inputs that reach new code. With ``all`` for TARGET it runs every target for that time in total,
each in a process of its own, and exits with 1 and the input if one fails. The first inputs are the
hostile corpus and good files.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.hostile import bitexts, others

MEMORY_BYTES = 6 << 30
PAIRS_READ = 2_000
SECONDS_PER_INPUT = 20
LARGEST_FIRST_BYTES = 100_000


class Reader(NamedTuple):
    """Reader of one kind of file.

    Attributes:
        suffix: of the file's name.
        read: reads a file, and raises an error of ours if it is damaged.
        first: contents to start from, good ones and damaged ones.
    """

    suffix: str
    read: Callable[[Path], object]
    first: list[bytes]

    def target(self, folder: Path) -> Callable[[bytes], None]:
        """Return a function that reads bytes as such a file, and lets other errors out.

        Args:
            folder: for the files.
        """

        def read_bytes(content: bytes) -> None:
            from interlingua.errors import InterlinguaError

            path = folder / f"a.de-en{self.suffix}"
            path.write_bytes(content)
            with contextlib.suppress(InterlinguaError):
                self.read(path)

        return read_bytes


def read_some_pairs(path: Path) -> None:
    from interlingua.corpus.formats.bitext import read_pairs

    for _ in itertools.islice(read_pairs(path), PAIRS_READ):
        pass


def read_cues_of(path: Path) -> None:
    from interlingua.corpus.formats.localization.subtitles import read_cues

    read_cues(path)


def read_keys_of(path: Path) -> None:
    from interlingua.corpus.formats.bad_lines import BadLines
    from interlingua.corpus.formats.localization.catalogs import read_keys

    read_keys(path, Counter(), BadLines())


def read_toml(path: Path) -> None:
    from interlingua.config import load_config
    from interlingua.errors import InterlinguaError
    from interlingua.preparation.config import PrepareConfig
    from interlingua.training.config import load_train_config

    with contextlib.suppress(InterlinguaError):
        load_train_config(path)
    load_config(PrepareConfig, path)


def read_model_config(path: Path) -> None:
    from interlingua.encoder.directories.model_directory import read_backbone_config, read_json
    from interlingua.vocabulary.model_files import BackboneFile

    raw = read_json(path, schema=BackboneFile)
    if raw.get("vocab_size") is not None:
        read_backbone_config(path.parent, raw)


def read_model_settings(path: Path) -> None:
    """Read the same bytes as each of the small files next to the weights.

    Raises:
        InterlinguaError: the last one, after all were read.
    """
    from interlingua.encoder.directories.model_directory import read_model_settings
    from interlingua.errors import InterlinguaError

    content, folder = path.read_bytes(), path.parent
    (folder / "1_Pooling").mkdir(exist_ok=True)
    good = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    names = (
        "modules.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
    )
    raised = None
    for name in names:
        for other in names:
            (folder / other).write_text("{}" if other != "modules.json" else json.dumps(good))
        (folder / name).write_bytes(content)
        try:
            read_model_settings(folder, 512)
        except InterlinguaError as error:
            raised = error
    if raised is not None:
        raise raised


def read_tokenizer(path: Path) -> None:
    from interlingua.vocabulary.vocabulary import Vocabulary

    Vocabulary.from_huggingface(path).encode(["a b", ""])


def read_array(path: Path) -> None:
    from interlingua.mining.vectors import open_vectors

    open_vectors([path], 2)


def read_results(path: Path) -> None:
    from interlingua.errors import InterlinguaError
    from interlingua.evaluation.results import read_result
    from interlingua.mining.calibration.calibration import load_calibrations

    with contextlib.suppress(InterlinguaError):
        load_calibrations(path)
    read_result(path)


def read_table(path: Path) -> None:
    from interlingua.evaluation.results import read_results as read

    read([path])


def read_labels(path: Path) -> None:
    from interlingua.corpus.formats.labeled_pairs import read_labeled
    from interlingua.errors import InterlinguaError

    with contextlib.suppress(InterlinguaError):
        read_labeled(path, kind="nli", languages=("eng_Latn", "eng_Latn"))
    read_labeled(path, kind="sts", languages=("eng_Latn", "eng_Latn"))


def read_some_questions(path: Path) -> None:
    from interlingua.corpus.formats.questions import read_questions

    for _ in itertools.islice(read_questions(path), PAIRS_READ):
        pass


def of_suffix(suffix: str) -> list[bytes]:
    """Return files of the hostile corpus that are small enough to start from."""
    return [
        content
        for name, content in bitexts.FILES.items()
        if name.endswith(suffix) and len(content) < 20_000
    ]


_CONFIG = {
    "model_type": "bert",
    "vocab_size": 99,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "pad_token_id": 0,
}
_WORDS = {"a": 0, "b": 1, "<unk>": 2}
_TOKENIZER = {
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": _WORDS, "unk_token": "<unk>"},
}
_MAPPED = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "CAAAAAAAAAAAAAAAYQA="}}
_DPR = [{"question": "a", "positive_ctxs": [{"title": "t", "text": "b"}], "hard_negative_ctxs": []}]
READERS: dict[str, Reader] = {
    "tsv": Reader(
        ".tsv", read_some_pairs, [b"eins\tone\n", b"0.5\teins\tone\n", *of_suffix(".tsv")]
    ),
    "csv": Reader(
        ".csv",
        read_some_pairs,
        [b"eins,one\n", b'source;target\n"eins;\n";one\n', *of_suffix(".csv")],
    ),
    "xlsx": Reader(".xlsx", read_some_pairs, [bitexts.workbook()]),
    "jsonl": Reader(".jsonl", read_some_pairs, [bitexts.row(), *of_suffix(".jsonl")]),
    "tmx": Reader(".tmx", read_some_pairs, [bitexts.tmx(), *of_suffix(".tmx")]),
    "xliff": Reader(
        ".xlf",
        read_some_pairs,
        [bitexts.xliff(), bitexts.XLIFF_2.encode(), *of_suffix(".xlf"), *of_suffix(".xliff")],
    ),
    "qt": Reader(".ts", read_some_pairs, [bitexts.QT.encode(), *of_suffix(".ts")]),
    "srt": Reader(".de.srt", read_cues_of, [bitexts.SRT, *of_suffix(".srt")]),
    "strings": Reader(".strings", read_keys_of, [b'"a" = "Katze";\n', *of_suffix(".strings")]),
    "android": Reader(".xml", read_keys_of, [bitexts.ANDROID.format(inner="Katze").encode()]),
    "po": Reader(".po", read_some_pairs, [bitexts.po(), *of_suffix(".po")]),
    "mo": Reader(
        ".mo", read_some_pairs, [bitexts.mo([(0, 44), (3, 44)], b"one"), *of_suffix(".mo")]
    ),
    "zip": Reader(".zip", read_some_pairs, [bitexts.archive(), *of_suffix(".zip")]),
    "gz": Reader(".tsv.gz", read_some_pairs, of_suffix(".gz")),
    "zst": Reader(".tsv.zst", read_some_pairs, [b"(\xb5/\xfd\x04\x00I\x00\x00eins\tone\n"]),
    "toml": Reader(
        ".toml",
        read_toml,
        [f"{key} = 1\n".encode() for key in ("output", "seed")]
        + [b'[run]\noutput = "x"\nmax_steps = 1\n'],
    ),
    "config": Reader(".json", read_model_config, [json.dumps(_CONFIG).encode()]),
    "settings": Reader(
        ".json",
        read_model_settings,
        [b'{"pooling_mode": "mean"}', b'[{"type": "a.Pooling", "path": ""}]'],
    ),
    "tokenizer": Reader(
        ".json",
        read_tokenizer,
        [json.dumps(_TOKENIZER).encode(), json.dumps({**_TOKENIZER, **_MAPPED}).encode()],
    ),
    "npy": Reader(
        ".npy",
        read_array,
        [made() for name, made in others.ARRAYS.items() if name.endswith(".npy")],
    ),
    "result": Reader(
        ".json",
        read_results,
        [content for content in others.RESULTS.values() if len(content) < 20_000],
    ),
    "table": Reader(
        ".jsonl",
        read_table,
        [content.replace(b"\n", b" ") for content in others.RESULTS.values()][:3],
    ),
    "labeled": Reader(
        ".jsonl",
        read_labels,
        [content for name, content in others.LABELED.items() if name.startswith("nli")][:3],
    ),
    "questions": Reader(
        ".json", read_some_questions, [json.dumps(_DPR).encode(), b'{"data": [{"paragraphs": []}]}']
    ),
}
"""By kind of file."""


def load_readers() -> None:
    """Import all that is read with, under atheris, which sees which lines an input reaches.

    Once for all targets.
    """
    import atheris

    with atheris.instrument_imports(
        include=["interlingua.corpus", "interlingua.config", "interlingua.vocabulary.model_files"]
    ):
        import interlingua.config
        import interlingua.corpus.formats
        import interlingua.corpus.formats.gettext
        import interlingua.corpus.formats.labeled_pairs
        import interlingua.corpus.formats.localization.catalogs
        import interlingua.corpus.formats.localization.subtitles
        import interlingua.corpus.formats.moses
        import interlingua.corpus.formats.questions
        import interlingua.corpus.formats.spreadsheet
        import interlingua.corpus.formats.tabular
        import interlingua.corpus.formats.tmx
        import interlingua.encoder.encoder
        import interlingua.evaluation.data.classification
        import interlingua.evaluation.results
        import interlingua.methods.ems
        import interlingua.mining.calibration.calibration
        import interlingua.preparation.config
        import interlingua.training.config  # noqa: F401


def run_one(name: str, seconds: int, corpus: Path) -> None:
    """Fuzz one reader in this process, and end the process."""
    import atheris

    first = READERS[name].first
    folder = corpus.with_name(f"{corpus.name}-files")
    folder.mkdir(exist_ok=True)
    target = READERS[name].target(folder)
    target(first[0])  # imports what else it needs, which would count as a hanging input
    for number, content in enumerate(first):
        if len(content) < LARGEST_FIRST_BYTES:
            (corpus / f"first-{number}").write_bytes(content)
    options = [
        "-seed=1",
        f"-max_total_time={seconds}",
        f"-timeout={SECONDS_PER_INPUT}",
        f"-rss_limit_mb={MEMORY_BYTES >> 20}",
    ]
    atheris.Setup(
        [sys.argv[0], *options, f"-artifact_prefix={corpus}/crash-", "-verbosity=0", str(corpus)],
        target,
    )
    atheris.Fuzz()


def run_all(seconds: int) -> int:
    """Fuzz all readers, one after another, and return the number of those that failed.

    Args:
        seconds: for all of them together.
    """
    fallen = 0
    for name in READERS:
        with tempfile.TemporaryDirectory() as folder:
            log, corpus = Path(folder) / "log", Path(folder) / "corpus"
            corpus.mkdir()
            child = os.fork()  # what was imported need not be imported again
            if not child:
                output = os.open(log, os.O_WRONLY | os.O_CREAT)
                os.dup2(output, 1)
                os.dup2(output, 2)
                try:
                    run_one(name, max(1, seconds // len(READERS)), corpus)
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)  # the parent's folder is not this process's to remove
                os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print(f"{name}: {'fell over' if status else 'nothing found'}", flush=True)
            if status:
                fallen += 1
                inputs = [path.read_bytes()[:500] for path in sorted(corpus.glob("crash-*"))]
                print(log.read_text(errors="replace")[-6000:], *inputs, sep="\n")
    return fallen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=["all", *READERS])
    parser.add_argument("seconds", type=int)
    parser.add_argument("corpus", nargs="?", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("INTERLINGUA_MAX_LINE", "1000000")
    load_readers()
    if options.target == "all":
        sys.exit(1 if run_all(options.seconds) else 0)
    run_one(options.target, options.seconds, options.corpus or Path(tempfile.mkdtemp()))


if __name__ == "__main__":
    main()
