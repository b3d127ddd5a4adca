"""Last stages: the token stores, and the held-out and validation texts."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.config import languages
from interlingua.errors import DataError
from interlingua.preparation.config import PrepareConfig
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate, Shard, total
from interlingua.preparation.sources import ENGLISH, LanguagePair
from interlingua.storage.files import open_text_writer

if TYPE_CHECKING:
    from interlingua.vocabulary.vocabulary import Vocabulary


def write_store(
    path: Path,
    shards: list[Shard],
    fate: Fate,
    vocabulary: Vocabulary,
    config: PrepareConfig,
    progress: StageProgress,
) -> dict[str, int]:
    """Tokenize all rows of a fate into a token store.

    Returns:
        Tokens written, by language.
    """
    from interlingua.batches.token_store import TokenStoreWriter

    tokens: Counter[str] = Counter()
    chosen = [shard for shard in shards if shard.count(fate)]
    progress.stage(f"tokenizing {path.name}", total=total(chosen, fate), unit="tokens")
    with TokenStoreWriter(
        path,
        vocabulary_size=vocabulary.size,
        vocabulary_digest=vocabulary.digest(),
        closing_tokens=vocabulary.closing_tokens,
    ) as writer:
        for shard in chosen:
            source, target = shard.language_pair
            for sources, targets in shard.blocks(shard.fates == fate):
                if config.prompt:
                    sources = [config.prompt + text for text in sources]
                    targets = [config.prompt + text for text in targets]
                source_ids, target_ids = [
                    vocabulary.encode(
                        texts,
                        language=language,
                        max_tokens=config.max_tokens,
                        sentencepiece_threads=config.tokenizing_threads,
                    )
                    for language, texts in ((source, sources), (target, targets))
                ]
                writer.append(shard.language_pair, source_ids, target_ids)
                source_tokens = sum(map(len, source_ids))
                target_tokens = sum(map(len, target_ids))
                tokens[source] += source_tokens
                tokens[target] += target_tokens
                progress.count(source_tokens + target_tokens)
                progress.advance(len(sources))
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
        DataError: no pair is left to train on; the message names the rules that dropped them.
    """
    if total(shards, Fate.train):
        return
    lost = []
    for fate in Fate:
        if count := total(shards, fate):
            lost.append(f"{fate.name} {count:,}")
    found = ", ".join(lost) or "cleaning dropped all pairs"
    raise DataError(f"no training pair is left ({found}); add sources or relax the rules")
