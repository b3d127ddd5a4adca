"""The passages of retrieval tasks embedded in parts, each by a process of its own; a later run joins the parts.

The vectors of all parts are in one cache, in which each process writes a file of its own and reads those of the others
(``VectorFiles``). So the parts need no other exchange: the run that scores finds all passages there. Parts are made of
the portions in which that run asks for the passages, and so batches, and with them vectors, are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from interlingua.errors import ConfigError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.task import Progress, Task
from interlingua.files import PathLike
from interlingua.mining.mine import parse_shard


@runtime_checkable
class HasShards(Protocol):
    """A task of which a part can be embedded."""

    def embed_shard(self, encoder: CachedEncoder, data: Path, shard: tuple[int, int], *, progress: Progress) -> None:
        """Embeds part ``shard[0]``, from 1, of ``shard[1]``."""
        ...


def checked_shard(shard: str, tasks: Sequence[Task], cache: PathLike | None) -> tuple[int, int]:
    """Which part of how many.

    Args:
        shard: ``2/8``.
        tasks: of the suite.
        cache: the folder that all parts share.

    Raises:
        ConfigError: it is no part, there is no cache, or a task is not embedded in parts.
    """
    found = parse_shard(shard)
    if cache is None:
        raise ConfigError("a shard needs --cache, the folder in which all shards keep their vectors")
    whole = [task.name for task in tasks if not isinstance(task, HasShards)]
    if whole:
        raise ConfigError(f"--shard: expected retrieval tasks, got {', '.join(whole)}; run it without --shard")
    return found


def embed_shard(
    encoder: CachedEncoder, tasks: Sequence[Task], data: Path, shard: tuple[int, int], progress: Progress
) -> None:
    """Embeds a part of the passages of each task.

    Args:
        encoder: keeps the vectors.
        tasks: see ``checked_shard``.
        data: the data's folder.
        shard: which part, from 1, of how many.
        progress: called after each portion.
    """
    for task in tasks:
        assert isinstance(task, HasShards)  # see checked_shard
        task.embed_shard(encoder, data, shard, progress=progress)
