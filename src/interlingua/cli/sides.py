"""What the verbs that mine share: their options, and the two sides as the user names them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from interlingua.mining.pipeline import TextFile

Text = str | None
Model = Annotated[str, typer.Argument(help="Model directory or hf:owner/name, or what the backend reads.")]
Source = Annotated[
    str,
    typer.Argument(
        help="Text of one language, a sentence per line, or .csv, .xlsx; also .gz, .xz, .zst, 'part-*.gz', s3://..."
    ),
]
Target = Annotated[str, typer.Argument(help="Text of the other language, in any of these formats.")]
SourceLanguage = Annotated[Text, typer.Option(help="Any code; from the file's name (news.de.txt, dev.zh) by default.")]
TargetLanguage = Annotated[Text, typer.Option(help="Any code; from the file's name by default.")]
SourceColumn = Annotated[
    Text,
    typer.Option(help="Column of a source that is .csv or .xlsx; the one called by the language, or text, by default."),
]
TargetColumn = Annotated[Text, typer.Option(help="Column of a target that is .csv or .xlsx.")]
LayoutOption = Annotated[
    str,
    typer.Option(
        help="lines, ids (id TAB text), documents (document TAB text), or auto; with --documents that is the last."
    ),
]
Documents = Annotated[
    Text, typer.Option(help="Only within matched documents: equal, urls, or a file, document TAB document; on the CPU.")
]
Background = Annotated[
    int, typer.Option(help="Texts of the other side that margins within documents are over, too.", min=0)
]
Work = Annotated[
    Path | None, typer.Option(help="Folder of all that is made on the way; OUTPUT.work by default, then removed.")
]
K = Annotated[int, typer.Option("--k", help="Neighbours scored, and averaged over in the margin.", min=1)]
MarginOption = Annotated[str, typer.Option(help="ratio, distance or absolute (plain cosine).")]
RetrievalOption = Annotated[str, typer.Option(help="max, intersection, forward or backward.")]
EqualOption = Annotated[
    str, typer.Option(help="Lines that are one text: exact, folded (but for case and punctuation), or never.")
]
Memory = Annotated[str, typer.Option(help="For reading, search and choosing pairs, beside the model: 4GiB, 800MiB.")]
SourceVectors = Annotated[
    Text, typer.Option(help="Vectors of the source's lines, .npy or LASER's raw float32, instead of the model.")
]
TargetVectors = Annotated[Text, typer.Option(help="Vectors of the target's lines, in the same formats.")]
Ray = Annotated[
    Text,
    typer.Option(help="Share the work out: local (processes of this machine), auto, host:6379 or ray://host:10001."),
]
RayCores = Annotated[int, typer.Option(help="Cores of each task on Ray, which holds the model once.", min=1)]
Prompt = Annotated[Text, typer.Option(help="Name of a prompt of the model, or text put before every line.")]
BatchTokens = Annotated[int, typer.Option(help="Tokens per batch at most.", min=1)]
Dtype = Annotated[Text, typer.Option(help="To compute in: float32 by default, bfloat16, float16, int8.")]
Device = Annotated[Text, typer.Option(help="cpu, cuda, cuda:1; a GPU where there is one by default.")]
Backend = Annotated[str, typer.Option(help="interlingua, sentence-transformers, onnx, openai, vectors or function.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="BACKEND.OPTION=VALUE: openai.dimensions=256.")]


OnError = Annotated[
    str,
    typer.Option(help="Of lines that can't be read: stop at the first, or skip, count and keep them in a file."),
]


def _set_max_line(characters: int) -> int:
    from interlingua.limits import MAX_LINE_CHARACTERS, set_max_line_characters

    if characters != MAX_LINE_CHARACTERS:  # else the environment's limit stays
        set_max_line_characters(characters)
    return characters


MaxLine = Annotated[
    int, typer.Option("--max-line", help="Characters that a line may have.", min=1, callback=_set_max_line)
]
MAX_LINE = 10_000_000
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]


def two_sides(
    model: str,
    paths: tuple[str, str],
    languages: tuple[Text, Text],
    layout: str,
    vectors: tuple[Text, Text],
    columns: tuple[Text, Text] = (None, None),
    *,
    folder: Path,
    prompt: Text,
    batch_tokens: int,
    dtype: Any,
    device: Text,
    backend: str,
    settings: Sequence[str],
    always_load: bool = False,
    elsewhere: bool = False,
    documents: Text = None,
) -> tuple[TextFile, TextFile, str]:
    """Both sides with what embeds them, and the model's identity; remote files are fetched into the folder.

    The model is not loaded where all vectors are given and no model of that name is here.
    """
    from interlingua.corpus.monolingual import language_of
    from interlingua.errors import ConfigError
    from interlingua.evaluation.encoders import encode_and_identity
    from interlingua.languages import resolve
    from interlingua.mining.pipeline import TextFile
    from interlingua.mining.texts import LAYOUTS, guess_layout
    from interlingua.remote import expand, fetch

    if layout not in ("auto", *LAYOUTS):
        raise ConfigError(f"layout {layout!r} is unknown; there are: auto, {', '.join(LAYOUTS)}")

    def fetched(name: Text) -> list[Path]:
        return [fetch(part, folder / "fetched") for part in expand(name)] if name else []

    layout = "documents" if documents is not None and layout == "auto" else layout

    def text_file(place: int) -> TextFile:
        files = fetched(paths[place])
        code = languages[place]
        return TextFile(
            path=paths[place],
            language=resolve(code).code if code else language_of(Path(paths[place])),
            layout=guess_layout(files[0]) if layout == "auto" else cast(Any, layout),
            vectors=fetched(vectors[place]),
            parts=files,
            column=columns[place],
        )

    sides = [text_file(0), text_file(1)]
    identity = f"vectors of {model}"
    if always_load or None in vectors or Path(model).exists():
        encode, identity = encode_and_identity(
            model, backend=backend, dtype=dtype, device=device, settings=settings, prompt=prompt,
            batch_tokens=batch_tokens, elsewhere=elsewhere,
        )  # fmt: skip
        sides = [side._replace(encode=functools.partial(encode, language=side.language)) for side in sides]
    return sides[0], sides[1], identity
