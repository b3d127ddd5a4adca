"""Verification of an export: each available runtime returns our vectors, or is reported.

Texts of several scripts, one of them of 600 words, are encoded by the encoder and by each
runtime that finds files in the exported directory. Their cosines must be 1 up to the rounding of
the stored weights. If the vectors of sentence-transformers differ by more, the stages from prompt
to pooling are compared one after another, so that the error names the first stage that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32
from numpy import ndarray

from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.monolingual import language_of, read_sentences
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.finite_vectors import check_finite
from interlingua.encoder.static import StaticBackbone
from interlingua.encoder.texts import is_blank
from interlingua.errors import CheckpointError
from interlingua.exporters.runtimes import Runtime, StockRuntime, runtimes
from interlingua.report.tables import Table
from interlingua.storage.files import PathLike, stem_and_suffix

MOST_TEXTS = 1000
"""Maximum number of texts of a language that are taken from a user's files."""
SAMPLES: Mapping[str, Sequence[str]] = {
    "eng_Latn": (
        "The cat sits on the mat.",
        "How much does the ticket to Berlin cost?",
        "Yes.",
        "a " * 600,
    ),
    "deu_Latn": ("Die Katze sitzt auf der Matte.", "Wie viel kostet die Fahrkarte nach Berlin?"),
    "fra_Latn": ("Le chat est assis sur le tapis.", "Combien coûte le billet pour Berlin ?"),
    "spa_Latn": ("El gato está sentado en la alfombra.", "¿Cuánto cuesta el billete a Berlín?"),
    "tur_Latn": ("Kedi paspasın üstünde oturuyor.", "Berlin'e bilet ne kadar?"),
    "vie_Latn": ("Con mèo ngồi trên tấm thảm.", "Vé đi Berlin giá bao nhiêu?"),
    "rus_Cyrl": ("Кошка сидит на коврике.", "Сколько стоит билет до Берлина?"),
    "ell_Grek": ("Η γάτα κάθεται στο χαλί.", "Πόσο κοστίζει το εισιτήριο για το Βερολίνο;"),
    "arb_Arab": ("القطة تجلس على السجادة.", "كم سعر التذكرة إلى برلين؟"),
    "hin_Deva": ("बिल्ली चटाई पर बैठी है।", "बर्लिन का टिकट कितने का है?"),
    "tha_Thai": ("แมวนั่งอยู่บนเสื่อ", "ตั๋วไปเบอร์ลินราคาเท่าไหร่"),
    "kor_Hang": ("고양이가 매트 위에 앉아 있다.", "베를린행 표는 얼마입니까?"),
    "jpn_Jpan": ("猫がマットの上に座っている。", "ベルリン行きの切符はいくらですか。"),
    "zho_Hans": ("猫坐在垫子上。", "去柏林的票多少钱？"),
}


class Lowest(NamedTuple):
    """Text of one language for which a runtime's vector has the smallest cosine to ours."""

    cosine: float
    text: str
    prompt: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """Closeness of the vectors of all runtimes."""

    texts: int
    tolerances: dict[str, float]
    """Largest allowed 1 - cosine of each runtime."""
    lowest: dict[str, dict[str, Lowest]]
    """Lowest cosine by runtime and language."""
    means: dict[str, float]
    """Mean cosine of all texts, by runtime."""

    @property
    def worst(self) -> dict[str, float]:
        """Smallest cosine in each language over all runtimes."""
        worst: dict[str, float] = {}
        for found in self.lowest.values():
            for code, low in found.items():
                worst[code] = min(low.cosine, worst.get(code, low.cosine))
        return worst

    @property
    def minimum(self) -> float:
        """Smallest cosine of all."""
        return min(self.worst.values())

    def failures(self) -> list[tuple[str, str, Lowest]]:
        """Return runtime, language and text of all differences above the tolerance."""
        return [
            (runtime, language, low)
            for runtime, found in self.lowest.items()
            for language, low in found.items()
            # This form of the comparison also fails for NaN.
            if not low.cosine >= 1 - self.tolerances[runtime]
        ]

    def table(self) -> list[str]:
        """Return lines for a report: 1 - the smallest cosine per language and runtime.

        There is a row for each language and a column for each runtime. ``!`` marks a value above
        the tolerance.
        """
        names = list(self.lowest)
        wrong = {(runtime, language) for runtime, language, _ in self.failures()}
        rows: list[Sequence[str]] = []
        for language in self.worst:
            cells = []
            for name in names:
                # Rounding can make a cosine a little more than 1.
                distance = max(0.0, 1 - self.lowest[name][language].cosine)
                mark = "!" if (name, language) in wrong else ""
                cells.append(f"{distance:.1e}{mark}")
            rows.append((language, *cells))
        means = [f"{max(0.0, 1 - self.means[name]):.1e}" for name in names]
        rows.append(("1 - mean cosine", *means))
        allowed = [f"{self.tolerances[name]:.1e}" for name in names]
        rows.append(("allowed", *allowed))
        head = ["1 - smallest cosine", *names]
        return Table("", head, rows, words=range(len(head))).text()


def verify(
    encoder: Encoder,
    folder: Path,
    samples: Mapping[str, Sequence[str]] = SAMPLES,
    *,
    called: PathLike | None = None,
    on_verified: Callable[[Verification], None] = lambda _: None,
) -> Verification:
    """Compare the encoder's vectors with those of every runtime of an exported directory.

    Texts are encoded without a prompt's name, and with each of the model's prompts.

    Args:
        encoder: the encoder, in the precision in which it was trained.
        folder: the exported directory.
        samples: texts by language code.
        called: name of the directory in errors; default: its path.
        on_verified: called with the measured values, also if they are above the tolerance.

    Raises:
        CheckpointError: a text's cosine is below 1 - the runtime's tolerance. The message names
            language and text, and, for sentence-transformers, whether tokens, length limit, hidden
            states or pooling differ.
        MissingExtraError: a runtime's library is not installed.
    """
    run_by = runtimes(folder)
    found = measure_runtimes(encoder, run_by, samples, (None, *encoder.settings.prompts))
    # Call it before any error is raised, so that the user sees the whole table and not only the
    # first difference.
    on_verified(found)
    for name, language, low in found.failures():
        runtime = next(runtime for runtime in run_by if runtime.name == name)
        reason = ""
        if isinstance(runtime, StockRuntime):
            reason = ": " + difference(
                encoder, runtime.model, low.text, language=language, prompt=low.prompt
            )
        shown = low.text
        if len(shown) > 60:
            shown = shown[:60] + "..."
        raise CheckpointError(
            f"{called or folder}: {name} returns another vector for {shown!r} ({language},"
            f" cosine {low.cosine:.6f}, expected at least 1 - {runtime.tolerance:g}){reason}"
        )
    return found


def check_exportable(
    encoder: Encoder,
    dtype: torch.dtype | None = None,
    samples: Mapping[str, Sequence[str]] = SAMPLES,
) -> None:
    """Refuse a model with vectors or weights that are not finite.

    Args:
        encoder: to be exported.
        dtype: to store its weights in; default: unchanged.
        samples: texts by language code, in languages that the model accepts.

    Raises:
        CheckpointError: a text's vector or a weight holds NaN or infinity, or a weight would if it
            were stored in the dtype.
    """
    shift = encoder.language_shift
    for language, texts in samples.items():
        # A vocabulary that segments words needs an extra library for some languages, but an export
        # does not need this library.
        if encoder.vocabulary.pre_tokenizer != "none" and language != "eng_Latn":
            continue
        if shift is None or language in shift.languages:
            _finite(encoder.encode(texts, language=language, report=EncodeReport()), texts)
    # Check the weights themselves, too: the texts above may not use every weight, and a weight may
    # be too large for the dtype (the largest float16 number is 65,504).
    for name, weight in encoder.state_dict().items():
        stored = weight
        if dtype is not None:
            stored = weight.to(dtype)
        if not torch.isfinite(stored).all():
            kind = str(stored.dtype).removeprefix("torch.")
            raise CheckpointError(
                f"the weights {name} contain NaN or infinity in {kind}; pass --dtype float32"
            )


def _finite(vectors: Float32[ndarray, "n d"], texts: Sequence[str]) -> None:
    check_finite(vectors, lambda row: repr(texts[row][:60]), error=CheckpointError)


def measure_runtimes(
    encoder: Encoder,
    run_by: Sequence[Runtime],
    samples: Mapping[str, Sequence[str]],
    prompts: Sequence[str | None] = (None,),
) -> Verification:
    """Measure how far each runtime's vectors are from the encoder's own; see ``verify``."""
    lowest: dict[str, dict[str, Lowest]] = {runtime.name: {} for runtime in run_by}
    sums = dict.fromkeys(lowest, 0.0)
    for language, texts in samples.items():
        for prompt in prompts:
            vectors = encoder.encode(texts, prompt=prompt, language=language, report=EncodeReport())
            _finite(vectors, texts)
            ours = vectors.astype(np.float64)
            for runtime in run_by:
                theirs = runtime.encode(texts, prompt=prompt)
                # Both have length 1, so inner products are cosines.
                cosines = (ours * theirs).sum(axis=1)
                # A text without a known token has a vector of zeros; two such vectors are equal.
                both_zero = ~ours.any(axis=1) & ~theirs.any(axis=1)
                cosines[both_zero] = 1.0
                # Other programs give a blank text the vector of their special tokens.
                cosines[[is_blank(text) for text in texts]] = 1.0
                sums[runtime.name] += float(cosines.sum())
                # NaN counts as the largest possible distance.
                place = int(np.nan_to_num(cosines, nan=-1.0).argmin())
                low = Lowest(float(cosines[place]), texts[place], prompt)
                known = lowest[runtime.name].setdefault(language, low)
                # Comparisons with NaN are false, so NaN is checked separately: a stored NaN stays,
                # and a new NaN replaces a stored number.
                is_known_nan = np.isnan(known.cosine)
                if not is_known_nan and not known.cosine <= low.cosine:
                    lowest[runtime.name][language] = low
    count = sum(map(len, samples.values()))
    return Verification(
        texts=count,
        tolerances={runtime.name: runtime.tolerance for runtime in run_by},
        lowest=lowest,
        means={name: total / (count * len(prompts)) for name, total in sums.items()},
    )


def with_texts_of(files: Iterable[PathLike]) -> dict[str, Sequence[str]]:
    """Return the built-in sample and the first texts of each language of a user's files.

    Args:
        files: ``.txt`` of one sentence a line, named by their language (``ru.txt``), or pairs in
            any known format.

    Raises:
        DataError: a file is missing or broken, or its language is unknown.
    """
    found: dict[str, list[str]] = {language: list(texts) for language, texts in SAMPLES.items()}
    # The built-in texts do not count towards the limit of the user's texts.
    limits = {language: len(texts) + MOST_TEXTS for language, texts in found.items()}
    for file in files:
        for language, text in _texts(file):
            texts = found.setdefault(language, [])
            if len(texts) < limits.get(language, MOST_TEXTS):
                texts.append(text)
    return dict(found)


def _texts(file: PathLike) -> Iterable[tuple[str, str]]:
    """Yield language and text of each sentence of a file, and of both sides of pairs."""
    if stem_and_suffix(file)[1] == ".txt":
        language = language_of(Path(file))
        for text in read_sentences(file):
            yield language, text
        return
    for pair in read_pairs(file):
        yield pair.source_language, pair.source
        yield pair.target_language, pair.target


def difference(
    encoder: Encoder, stock: Any, text: str, *, language: str, prompt: str | None
) -> str:
    """Describe the first stage, from tokens to vector, at which the two models differ."""
    own_name = prompt
    stock_name = prompt
    # Each of the two models has its own default prompt.
    if prompt is None:
        own_name = encoder.settings.default_prompt
        stock_name = stock.default_prompt_name
    own_prompt = encoder.settings.prompts.get(own_name or "", "")
    stock_prompt = stock.prompts.get(stock_name or "", "")
    if own_prompt != stock_prompt:
        return f"the prompt is {stock_prompt!r}, but that of the encoder is {own_prompt!r}"
    prompted = own_prompt + text
    if isinstance(encoder.backbone, StaticBackbone):
        return _static_difference(encoder, stock, prompted, language)
    ids = encoder.vocabulary.encode([prompted], language=language, max_tokens=encoder.max_tokens)[0]
    features = stock.preprocess([prompted])
    theirs = features["input_ids"][0].tolist()
    # If a text is cut, its tokens differ too; then the limit is the reason to report.
    if len(ids) != len(theirs) and stock.max_seq_length != encoder.max_tokens:
        return (
            f"texts are truncated at {stock.max_seq_length} tokens, but the encoder truncates at"
            f" {encoder.max_tokens}"
        )
    if ids != theirs:
        # If one sequence is the start of the other, they differ at the end of the shorter one.
        shorter = min(len(ids), len(theirs))
        place = next((i for i in range(shorter) if ids[i] != theirs[i]), shorter)
        return (
            f"the tokens differ from position {place}: ids {ids[place : place + 3]} and"
            f" {theirs[place : place + 3]}"
        )
    with torch.no_grad():
        # One sentence, packed: it starts at token 0 and ends at the last.
        own = encoder.backbone(torch.tensor(ids), torch.tensor([0, len(ids)]))
        # The features may hold other things besides tensors, which the module does not take.
        tensors = {key: value for key, value in features.items() if isinstance(value, torch.Tensor)}
        states = stock[0](tensors)
        distance = (own - states["token_embeddings"][0].float()).abs().max().item()
    # A smaller distance is attributed to the rounding of the stored weights.
    if distance > 0.05:
        return (
            f"the hidden states differ by up to {distance:.3g}, so weights, positions or"
            " activation differ"
        )
    return (
        "tokens and hidden states are equal, but pooling or normalization differ (the encoder's"
        f" pooling is {encoder.pooling})"
    )


def _static_difference(encoder: Encoder, stock: Any, text: str, language: str) -> str:
    """Describe the first difference for token vectors, which have no hidden states or limit."""
    special = set(encoder.special_ids.tolist())
    tokens = encoder.vocabulary.encode([text], language=language)[0]
    # The module of sentence-transformers makes no special tokens.
    ids = [token for token in tokens if token not in special]
    theirs = stock.preprocess([text])["input_ids"].tolist()
    if ids != theirs:
        return (
            f"the tokens differ: {len(ids)} and {len(theirs)} tokens, beginning with {ids[:3]}"
            f" and {theirs[:3]}"
        )
    return "the tokens are equal, but their vectors or the normalization differ"
