"""The proof of an export: the same vectors from us and from sentence-transformers, or the name of what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32

from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError, MissingExtraError

TOLERANCES = {"float32": 1e-5, "float16": 1e-4, "bfloat16": 1e-2}
"""Largest 1 - cosine that is put down to rounding, by the dtype of the stored weights."""
SAMPLES: Mapping[str, Sequence[str]] = {
    "eng_Latn": ("The cat sits on the mat.", "How much does the ticket to Berlin cost?", "Yes.", "a " * 600),
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """How close the vectors are."""

    texts: int
    worst: dict[str, float]
    """Smallest cosine in each language."""

    @property
    def minimum(self) -> float:
        """Smallest cosine of all."""
        return min(self.worst.values())


def verify(
    encoder: Encoder,
    folder: Path,
    samples: Mapping[str, Sequence[str]] = SAMPLES,
    *,
    dtype: str = "float32",
    prompts: Sequence[str | None] = (None,),
) -> Verification:
    """Encodes texts with the encoder and with ``SentenceTransformer(folder)``.

    Args:
        encoder: in the precision it was trained in.
        folder: the exported directory.
        samples: texts by language code.
        dtype: of the exported weights; decides the tolerance.
        prompts: names of the model's prompts to check too; None = as without asking for any.

    Raises:
        CheckpointError: a text's cosine is below 1 - tolerance; says which text, and whether tokens, length limit,
            hidden states or pooling differ.
        MissingExtraError: sentence-transformers is not installed.
    """
    stock = load_stock(folder)
    worst: dict[str, float] = {}
    for language, texts in samples.items():
        for prompt in prompts:
            ours = encoder.encode(texts, prompt=prompt, language=language, report=EncodeReport())
            theirs: Float32[np.ndarray, "n d"] = stock.encode(
                list(texts), prompt_name=prompt, normalize_embeddings=True, show_progress_bar=False
            )
            cosines = (ours.astype(np.float64) * theirs.astype(np.float64)).sum(axis=1)
            lowest = int(cosines.argmin())
            worst[language] = min(worst.get(language, 1.0), float(cosines[lowest]))
            if not cosines[lowest] > 1 - TOLERANCES[dtype]:
                reason = difference(encoder, stock, texts[lowest], language=language, prompt=prompt)
                shown = texts[lowest] if len(texts[lowest]) <= 60 else texts[lowest][:60] + "..."
                raise CheckpointError(
                    f"{folder}: sentence-transformers gives another vector for {shown!r} ({language},"
                    f" cosine {cosines[lowest]:.6f}, wanted 1 - {TOLERANCES[dtype]:g}): {reason}"
                )
    return Verification(texts=sum(map(len, samples.values())), worst=worst)


def load_stock(folder: Path) -> Any:
    """``SentenceTransformer(folder)`` on the CPU, computing in float32 whatever the stored weights are.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", "sentence-transformers") from error
    return SentenceTransformer(str(folder), device="cpu").float()


def difference(encoder: Encoder, stock: Any, text: str, *, language: str, prompt: str | None) -> str:
    """The first stage, from tokens to vector, at which the two part."""
    import torch

    own_name = encoder.settings.default_prompt if prompt is None else prompt
    stock_name = stock.default_prompt_name if prompt is None else prompt
    own_prompt, stock_prompt = encoder.settings.prompts.get(own_name or "", ""), stock.prompts.get(stock_name or "", "")
    if own_prompt != stock_prompt:
        return f"its prompt is {stock_prompt!r}, the encoder's {own_prompt!r}"
    prompted = own_prompt + text
    ids = encoder.vocabulary.encode([prompted], language=language, max_tokens=encoder.max_tokens)[0]
    features = stock.preprocess([prompted])
    theirs = features["input_ids"][0].tolist()
    if len(ids) != len(theirs) and stock.max_seq_length != encoder.max_tokens:
        return f"it cuts texts at {stock.max_seq_length} tokens, the encoder at {encoder.max_tokens}"
    if ids != theirs:
        place = next(
            (i for i, (a, b) in enumerate(zip(ids, theirs, strict=False)) if a != b), min(len(ids), len(theirs))
        )
        return f"the tokens differ, from place {place}: ids {ids[place : place + 3]} and {theirs[place : place + 3]}"
    with torch.no_grad():
        own = encoder.backbone(torch.tensor(ids), torch.tensor([0, len(ids)]))
        states = stock[0]({key: value for key, value in features.items() if isinstance(value, torch.Tensor)})
        apart = (own - states["token_embeddings"][0].float()).abs().max().item()
    if apart > 0.05:
        return f"the hidden states differ by up to {apart:.3g}, so weights, positions or activation are not the same"
    return f"tokens and hidden states agree; pooling or normalisation differ (the encoder pools by {encoder.pooling})"
