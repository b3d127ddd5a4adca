"""Last stages: the token stores, and the held-out and validation texts."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path

from interlingua.config import languages
from interlingua.errors import DataError
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate, Shard, total
from interlingua.preparation.sources import ENGLISH, LanguagePair
from interlingua.preparation.tokenizing import PairTokenizer, pair_blocks
from interlingua.runtime.workers import Workers
from interlingua.storage.files import open_text_writer


def write_store(
    path: Path,
    shards: list[Shard],
    fate: Fate,
    tokenizer: PairTokenizer,
    progress: StageProgress,
    workers: Workers | None = None,
) -> dict[str, int]:
    """Tokenize all rows of a fate into a token store.

    Args:
        path: the folder to make.
        shards: with their fates.
        fate: of the rows to write.
        tokenizer: of both sides.
        progress: shows the progress.
        workers: the processes that tokenize; default: this one.

    Returns:
        Tokens written, by language.
    """
    from interlingua.batches.token_store import TokenStoreWriter

    workers = workers or Workers()
    vocabulary = tokenizer.vocabulary
    tokens: Counter[str] = Counter()
    progress.stage(f"tokenizing {path.name}", total=total(shards, fate), unit="tokens")
    with TokenStoreWriter(
        path,
        vocabulary_size=vocabulary.size,
        vocabulary_digest=vocabulary.digest(),
        closing_tokens=vocabulary.closing_tokens,
    ) as writer:
        tasks = ((block,) for block in pair_blocks(shards, fate))
        for block in workers.run(tokenizer.tokenize, tasks):
            writer.append_packed(block.language_pair, block.ids, block.lengths)
            for side, language in enumerate(block.language_pair):
                tokens[language] += int(block.lengths[side::2].sum())
            progress.count(len(block.ids))
            progress.advance(len(block.lengths) // 2)
    progress.done()
    return dict(tokens)


def write_texts(folder: Path, shards: list[Shard], fate: Fate) -> None:
    """Write all rows of a fate as ``<iso3>-eng.tsv`` (text TAB English).

    The evaluation reads these files as pairs of languages; see ``corpus.formats.evaluation_sets``.
    """
    folder.mkdir()
    names = file_names({shard.language_pair for shard in shards})
    # The shards are in the order of their language pairs, which groupby needs.
    for language_pair, group in groupby(shards, key=lambda shard: shard.language_pair):
        chosen = [shard for shard in group if shard.count(fate)]
        if not chosen:  # an empty file would be an error to the evaluation
            continue
        with open_text_writer(folder / names[language_pair]) as file:
            for shard in chosen:
                for sources, targets in shard.blocks(shard.fates == fate):
                    for source, target in zip(sources, targets, strict=True):
                        file.write(f"{source}\t{target}\n")


def file_names(language_pairs: set[LanguagePair]) -> dict[LanguagePair, str]:
    """Return a file name per language pair, from the languages' ISO 639-3 codes.

    If a language occurs in two scripts, its full codes are used instead.
    """
    found = {code: languages.resolve_language(code) for pair in language_pairs for code in pair}
    uses = Counter(language.iso3 for language in found.values())
    short = {}
    for code, language in found.items():
        short[code] = language.iso3
        if uses[language.iso3] > 1 and code != ENGLISH:
            short[code] = code
    return {pair: f"{short[pair[0]]}-{short[pair[1]]}.tsv" for pair in language_pairs}


def check_not_empty(shards: list[Shard]) -> None:
    """Refuse an empty corpus.

    Raises:
        DataError: no pair is left to train on; the message names the rules that dropped the pairs.
    """
    if total(shards, Fate.train):
        return
    lost = []
    for fate in Fate:
        if count := total(shards, fate):
            lost.append(f"{fate.name} {count:,}")
    found = ", ".join(lost) or "cleaning dropped all pairs"
    raise DataError(f"no training pair is left ({found}); add sources or relax the rules")
