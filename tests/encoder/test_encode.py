from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder import encode as encode_module
from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encode import EncodeReport, encode_tokens, token_budget_batches
from interlingua.encoder.post_pooling import Dense
from interlingua.errors import ConfigError, DataError
from interlingua.kernels import library
from tests.encoder.builders import with_layers
from tests.encoder.shapes import tiny_encoder
from tests.progress_records import Recorded
from tests.training.runs import run_python


def one_by_one(encoder, texts):
    """Encode each text separately through the training path."""
    rows = []
    with torch.no_grad():
        for ids in encoder.vocabulary.encode(texts, max_tokens=encoder.max_tokens):
            rows.append(encoder(TokenBatch.from_lists([ids], [""]))[0])
    return torch.nn.functional.normalize(torch.stack(rows)).numpy()


@pytest.mark.parametrize("batch_tokens", [1, 40, 16_384])
@pytest.mark.parametrize("window", [3, 16_384])
def test_vectors_come_in_the_order_of_the_texts(
    encoder, sentences, batch_tokens, window, monkeypatch
):
    monkeypatch.setattr(encode_module, "WINDOW_TEXTS", window)
    vectors = encoder.encode((text for text in sentences), batch_tokens=batch_tokens)
    assert vectors.dtype == np.float32
    assert np.abs(vectors - one_by_one(encoder, sentences)).max() < 1e-5


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
@pytest.mark.parametrize("include_special", [True, False])
def test_every_pooling_is_the_training_path_s(framed_encoder, sentences, pooling, include_special):
    """Cut sentences too: their closing tokens survive the cut."""
    for limit in (64, 6):
        framed_encoder.settings = EncodingSettings(
            pooling=pooling, include_special=include_special, max_tokens=limit
        )
        difference = framed_encoder.encode(sentences) - one_by_one(framed_encoder, sentences)
        assert np.abs(difference).max() < 1e-5


@pytest.mark.parametrize("least", [10, 10**6], ids=["a batch each", "one batch for all"])
def test_several_threads_give_the_same(encoder, sentences, set_threads, least, monkeypatch):
    monkeypatch.setattr(encode_module, "MIN_SHARE_TOKENS", least)
    alone = encoder.encode(sentences * 5, batch_tokens=20)
    set_threads(3)
    together = encoder.encode(sentences * 5, batch_tokens=20)
    assert torch.get_num_threads() == 3
    assert np.abs(alone - together).max() < 1e-6


def test_normalization_is_a_choice(encoder, sentences):
    raw = encoder.encode(sentences, normalize_embeddings=False)
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert np.abs(lengths - 1).min() > 1e-3
    assert np.allclose(raw / lengths, encoder.encode(sentences), atol=1e-6)


def test_prompts_by_name_by_text_and_by_default(encoder, sentences):
    prefixed = encoder.encode(["ask: " + text for text in sentences])
    plain = encoder.encode(sentences)
    for default, prompt, expected in [
        (None, "query", prefixed),
        (None, "ask: ", prefixed),
        (None, None, plain),
        ("query", None, prefixed),
        ("query", "", plain),
    ]:
        encoder.settings = EncodingSettings(
            prompts={"query": "ask: "}, default_prompt=default, max_tokens=120
        )
        assert np.array_equal(encoder.encode(sentences, prompt=prompt), expected)


def test_long_texts_are_cut_and_counted(encoder, sentences, caplog, monkeypatch):
    monkeypatch.setattr(encode_module, "WINDOW_TEXTS", 3)
    encoder.settings = EncodingSettings(max_tokens=6)
    report = EncodeReport()
    vectors = encoder.encode(sentences, report=report)
    lengths = [len(ids) for ids in encoder.vocabulary.encode(sentences)]
    long = [row for row, length in enumerate(lengths) if length > 6]
    assert 0 < len(long) < len(sentences)
    assert (report.texts, report.max_tokens) == (8, 6)
    assert report.tokens == sum(min(6, length) for length in lengths)
    assert list(report.cut_rows) == long
    assert np.abs(vectors - one_by_one(encoder, sentences)).max() < 1e-5
    encoder.encode(sentences[long[0] :], report=report)
    assert list(report.cut_rows) == long + [8 + row - long[0] for row in long]
    assert report.cuts == f"{2 * len(long)} of {16 - long[0]} texts were cut to 6 tokens"
    assert not caplog.records


def test_windows_end_at_many_texts_and_at_many_characters(monkeypatch):
    monkeypatch.setattr(encode_module, "WINDOW_TEXTS", 3)
    monkeypatch.setattr(encode_module, "WINDOW_CHARACTERS", 10)
    texts = ["a", "bb", "c", "d" * 30, "e" * 6, "f" * 6, "g"]
    windows = list(encode_module.windows(iter(texts)))
    assert [len(window) for window in windows] == [3, 1, 2, 1]
    assert [text for window in windows for text in window] == texts
    assert list(encode_module.windows([])) == []


def test_of_a_long_text_only_the_beginning_is_tokenized(framed_encoder, monkeypatch):
    framed_encoder.settings = EncodingSettings(max_tokens=10)
    seen = []
    tokenizer = framed_encoder.vocabulary.tokenizer

    class Counting:
        def __getattr__(self, name):
            return getattr(tokenizer, name)

        def encode(self, text):
            seen.append(len(text))
            return tokenizer.encode(text)

    short = "The cat sits on the mat. " * 20
    expected = framed_encoder.encode([short])
    monkeypatch.setattr(framed_encoder.vocabulary, "tokenizer", Counting())
    report = EncodeReport()
    assert np.array_equal(framed_encoder.encode([short * 5000], report=report), expected)
    assert seen[0] < 300
    assert list(report.cut_rows) == [0]


def test_a_limit_is_warned_of_once(encoder, sentences, caplog, monkeypatch):
    monkeypatch.setattr(encode_module, "_WARNED_LIMITS", set())
    for limit in (6, 6, 5):
        encoder.settings = EncodingSettings(max_tokens=limit)
        encoder.encode(["Yes."])
        encoder.encode(["One two three four five six seven", "Yes."])
    first, second = caplog.messages
    assert first.startswith("1 of 2 texts were cut to 6 tokens")
    assert second.startswith("1 of 2 texts were cut to 5 tokens")


def test_empty_texts_and_no_texts(encoder, tmp_path):
    texts = ["", "The cat sits on the mat.", " \t\n", "\u200b\ufeff", "\u3000", "."]
    for options in (
        {},
        {"prompt": "query: "},
        {"normalize_embeddings": False},
        {"truncate_dim": 8},
    ):
        vectors = encoder.encode(texts, **options)
        assert np.isfinite(vectors).all()
        assert vectors.any(axis=1).tolist() == [False, True, False, False, False, True]
    assert np.array_equal(encoder.encode(texts)[1], encoder.encode([texts[1]])[0])
    for out in (None, tmp_path / "out.npy"):
        assert encoder.encode([], out=out).shape == (0, 32)
    assert np.load(tmp_path / "out.npy").shape == (0, 32)


@pytest.mark.parametrize("known", [True, False])
def test_output_to_a_memory_map(encoder, sentences, tmp_path, monkeypatch, known):
    monkeypatch.setattr(encode_module, "WINDOW_TEXTS", 3)
    texts = sentences if known else iter(sentences)
    mapped = encoder.encode(texts, out=tmp_path / "deep" / "out.npy")
    assert isinstance(mapped, np.memmap)
    assert np.array_equal(mapped, encoder.encode(sentences))
    assert np.array_equal(np.load(tmp_path / "deep" / "out.npy"), mapped)


def test_a_failure_leaves_no_output(encoder, sentences, tmp_path, monkeypatch):
    monkeypatch.setattr(encode_module, "WINDOW_TEXTS", 2)

    def broken():
        yield from sentences
        raise DataError("unreadable", path="texts.txt", line=9)

    with pytest.raises(DataError, match=r"texts\.txt:9"):
        encoder.encode(broken(), out=tmp_path / "out.npy")
    assert not list(tmp_path.iterdir())


def test_memory_stays_bounded_by_the_window(encoder, sentences, tmp_path, monkeypatch):
    """Check that at most three windows are read ahead of the written output."""
    monkeypatch.setattr(encode_module, "WINDOW_TEXTS", 4)
    read, written = 0, []

    def texts():
        nonlocal read
        for text in sentences * 5:
            read += 1
            yield text

    original = encode_module._BatchRunner.__call__

    def spy(self, window, *args):
        written.append(len(window))
        assert read - sum(written[:-1]) <= 3 * 4
        return original(self, window, *args)

    monkeypatch.setattr(encode_module._BatchRunner, "__call__", spy)
    assert encoder.encode(texts(), out=tmp_path / "o.npy").shape == (40, 32)
    assert written == [4] * 10


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_fewer_bits_stay_close(encoder, sentences, dtype):
    exact, rounded = encoder.encode(sentences), encoder.encode(sentences, dtype=dtype)
    assert rounded.dtype == np.float32
    assert 0.999 < (exact * rounded).sum(1).min() < 1 - 1e-9


def test_a_short_call_starts_no_thread(encoder, sentences, monkeypatch, set_threads):
    expected = encoder.encode(sentences)
    monkeypatch.setattr(encode_module, "ThreadPoolExecutor", None)
    set_threads(2)
    assert np.allclose(encoder.encode(sentences), expected, atol=1e-6)


def test_threads_have_several_batches_each(encoder, sentences, monkeypatch, set_threads):
    made = []
    monkeypatch.setattr(encode_module, "MIN_SHARE_TOKENS", 10)
    original = encode_module._BatchRunner.pooled
    monkeypatch.setattr(
        encode_module._BatchRunner,
        "pooled",
        lambda *given: made.append(len(given[2])) or original(*given),
    )
    set_threads(2)
    encoder.encode(sentences * 5)
    assert sum(made) == 40
    assert len(made) >= 2 * encode_module.SHARES


QUERY = """
import sys
import time
import torch
from interlingua.encoder.encoder import Encoder

torch.set_num_threads(2)
encoder = Encoder.load(sys.argv[1], device="cpu")
spent = []
for _ in range(5):
    encoder.encode([sys.argv[2]])
    before = time.process_time()
    time.sleep(0.03)
    spent.append(time.process_time() - before)
print(sorted(spent)[2])
"""


@pytest.mark.skipif(library("layers") is None, reason="needs the compiled kernel")
def test_a_query_keeps_no_core_busy_afterwards(framed_vocabulary, sentences, tmp_path):
    """Check the threads of torch and of the tokenizer, which wait busily for milliseconds."""
    shape = {"hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 128}
    encoder = with_layers(tiny_encoder(framed_vocabulary, **shape), Dense(64, 384), Dense(384, 64))
    encoder.save(tmp_path / "model")
    done = run_python("-c", QUERY, tmp_path / "model", sentences[0])
    assert float(done.stdout) < 0.003


def test_few_sentences_are_one_batch_for_all_threads(encoder, sentences, monkeypatch, set_threads):
    """Check one batch with the threads of torch, not a part per thread."""
    seen = []
    original = encode_module._BatchRunner.pooled
    monkeypatch.setattr(
        encode_module._BatchRunner,
        "pooled",
        lambda *given: seen.append((len(given[2]), torch.get_num_threads())) or original(*given),
    )
    set_threads(3)
    encoder.encode(sentences)
    assert seen == [(len(sentences), 3)]


def test_progress_counts_every_text(encoder, sentences, capsys):
    told = Recorded()
    encoder.encode(sentences, show_progress_bar=told)
    assert told.done == 8
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("texts", "options", "kind", "match"),
    [
        ({"a text"}, {}, ConfigError, "found a set"),
        (["a text"], {"batch_size": 0}, ConfigError, "batch_size: .*found 0"),
        (["a text"], {"batch_tokens": 0}, ConfigError, "batch_tokens: .*found 0"),
        (["a text"], {"dtype": "float8"}, ConfigError, r"dtype 'float8'; .*: float32"),
        (["a text"], {"language": "Germn"}, DataError, "Germn"),
    ],
)
def test_mistakes_are_named(encoder, texts, options, kind, match):
    with pytest.raises(kind, match=match):
        encoder.encode(texts, **options)


def test_batches_respect_the_budget():
    lengths = [3, 9, 1, 4, 4, 20, 2]
    batches = list(token_budget_batches(lengths, 10))
    assert sorted(row for batch in batches for row in batch) == list(range(7))
    assert all(sum(lengths[row] for row in batch) <= 10 or len(batch) == 1 for batch in batches)
    assert batches == [[5], [1], [3, 4], [0, 6, 2]]


def test_tokens_have_the_vectors_of_their_text(encoder, sentences):
    ids = encoder.vocabulary.encode(sentences, max_tokens=encoder.max_tokens)
    for normalize in (True, False):
        vectors = encoder.encode(sentences, normalize_embeddings=normalize)
        assert np.array_equal(encode_tokens(encoder, ids, normalize=normalize), vectors)
