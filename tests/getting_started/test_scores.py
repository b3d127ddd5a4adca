import numpy as np
import pytest

from interlingua.getting_started.scores import (
    Average,
    LanguageScore,
    averages,
    score_with_baselines,
)


class Numbered:
    """Encoder by the last word, a number. Translations share it, except Greek ones above 5."""

    dim = 400

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in enumerate(texts):
            number = int(text.split()[-1])
            vectors[row, number if language != "ell_Grek" or number < 5 else 399] = 1
        return vectors


def language_score(script, kind, messages, tfidf, model):
    return LanguageScore(
        code="x",
        name="x",
        script=script,
        kind=kind,
        messages=messages,
        random=1 / messages,
        tfidf=tfidf,
        model=model,
    )


def test_score_is_the_tatoeba_task_beside_the_baselines(tmp_path):
    folder = tmp_path / "sentences"
    folder.mkdir()
    (folder / "deu-eng.tsv").write_text(
        "".join(f"Satz Nummer {n}\tsentence number {n}\n" for n in range(1, 9))
    )
    (folder / "ell-eng.tsv").write_text(
        "".join(f"πρόταση {n}\tsentence {n}\n" for n in range(1, 9))
    )
    scores = {
        s.name: s
        for s in score_with_baselines(
            Numbered(), {"sentences": folder}, name="mine", output=tmp_path
        )
    }
    assert list(scores) == ["German", "Greek"]
    assert (scores["German"].script, scores["Greek"].script) == ("latin", "other")
    assert scores["German"].model == (1.0, 1.0)
    assert scores["Greek"].model == (4 / 8, 4 / 8)
    assert scores["Greek"].tfidf == (1.0, 1.0)  # the numbers give it away
    assert scores["Greek"].random == 1 / 8
    assert list((tmp_path / "results" / "mine").rglob("tatoeba_sentences*.json"))


def test_averages_count_languages_of_a_hundred_messages():
    scores = [
        language_score("other", "sentences", 100, (0.1, 0.3), (0.4, 0.6)),
        language_score("other", "sentences", 200, (0.0, 0.0), (0.7, 0.9)),
        language_score("other", "sentences", 99, (1.0, 1.0), (1.0, 1.0)),
        language_score("latin", "names", 100, (0.5, 0.5), (0.25, 0.25)),
    ]
    other, latin = averages(scores)
    assert (other.script, other.kind, other.languages) == ("other", "sentences", 2)
    assert (other.random, other.tfidf, other.model) == pytest.approx((0.0075, 0.1, 0.65))
    assert other.ratio == pytest.approx(6.5)
    assert (latin.kind, latin.ratio) == ("names", 0.5)


def test_ratio_to_a_baseline_that_finds_nothing():
    nothing = Average(
        script="other", kind="sentences", languages=1, random=0.01, tfidf=0.0, model=0.2
    )
    assert nothing.ratio == float("inf")
