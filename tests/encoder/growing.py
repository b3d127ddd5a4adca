"""Tiny tokenizers of each kind, from a list of pieces or from texts."""

from __future__ import annotations

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from interlingua.vocabulary.vocabulary import Vocabulary

SPECIAL = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}


def _vocabulary(tokenizer, added):
    tokenizer.add_special_tokens([*SPECIAL.values(), *added])
    return Vocabulary(tokenizer.to_str(), special_tokens=SPECIAL)


def unigram(pieces, *, added=(), scores=None, frame=False):
    """Build a Unigram vocabulary like XLM-R's: earlier pieces have higher scores."""
    entries = [(token, 0.0) for token in SPECIAL.values()]
    entries += [
        (piece, (scores or {}).get(piece, -1.0 - place / 8)) for place, piece in enumerate(pieces)
    ]
    tokenizer = Tokenizer(models.Unigram(entries, unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    if frame:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<mask> $A <pad>", special_tokens=[("<mask>", 2), ("<pad>", 0)]
        )
    return _vocabulary(tokenizer, added)


def wordpiece(pieces, *, added=()):
    """Build a WordPiece vocabulary like BERT's."""
    ids = {token: number for number, token in enumerate([*SPECIAL.values(), *pieces])}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _vocabulary(tokenizer, added)


def bpe(pieces, *, merges=(), added=()):
    """Build a BPE vocabulary like SentencePiece's."""
    ids = {token: number for number, token in enumerate([*SPECIAL.values(), *pieces])}
    tokenizer = Tokenizer(models.BPE(ids, list(merges), unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return _vocabulary(tokenizer, added)


def trained_wordpiece(texts, size, *, lowercase=True):
    """Train a WordPiece vocabulary like BERT's, with [CLS] and [SEP] around each text."""
    roles = ("pad", "unk", "cls", "sep", "mask")
    special = {f"{role}_token": f"[{role.upper()}]" for role in roles}
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=list(special.values()), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return Vocabulary(tokenizer.to_str(), special_tokens=special)
