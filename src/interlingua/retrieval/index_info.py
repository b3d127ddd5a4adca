"""The content of an index, how its vectors were made, and its size on disk."""

from __future__ import annotations

from typing import NamedTuple

from interlingua.retrieval.passage_index import PassageIndex


class IndexInfo(NamedTuple):
    """An index in numbers.

    Attributes:
        passages: number of them.
        languages: number of passages by language, largest first.
        model: folder or name of the model when the index was built.
        dim: width of the vectors.
        passage_prompt: text in front of passages.
        question_prompt: text in front of questions.
        has_map: whether vectors go through a language map.
        is_approximate: whether searches read an index of vectors.
        bytes: size on the disk, including older versions.
        versions: states of the index that are on the disk; ``index compact`` keeps the newest.
    """

    passages: int
    languages: dict[str, int]
    model: str
    dim: int
    passage_prompt: str
    question_prompt: str
    has_map: bool
    is_approximate: bool
    bytes: int
    versions: int


def index_info(index: PassageIndex) -> IndexInfo:
    """Return the description of an index."""
    settings = index.settings
    files = [path for path in index.folder.rglob("*") if path.is_file()]
    return IndexInfo(
        passages=index.count(),
        languages=index.languages(),
        model=settings.model,
        dim=settings.dim,
        passage_prompt=settings.passage_prompt,
        question_prompt=settings.question_prompt,
        has_map=bool(settings.map_digest),
        is_approximate=index.is_approximate,
        bytes=sum(path.stat().st_size for path in files),
        versions=sum(path.suffix == ".manifest" for path in files),
    )
