"""Options that each method refuses: numbers out of range, and options without effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest

from interlingua.config import Between
from interlingua.config.method_options import read_options
from interlingua.config.registry import METHODS, resolve_name
from interlingua.errors import ConfigError
from interlingua.methods.combination import CombinationConfig
from interlingua.methods.heads.unmasking_head import UnmaskingHeadConfig

REFUSED = {
    "anchor": [
        (
            {"mse_weight": 0.0, "to_bank_weight": 0.0, "from_bank_weight": 0.0, "soft_weight": 0.0},
            "other than hard_weight",
        ),
        ({"hard_weight": -1.0}, "hard_weight: .*found -1.0"),
        ({"temperature": 0.0}, "temperature"),
        ({"bank_size": 0}, "bank_size"),
        ({"teacher_prompts": ("a", "b")}, "teacher_prompts"),
        ({"hard_weight": 1.0, "student_reads": "translations"}, "hard_weight"),
        ({"original_steps": 4, "student_reads": "both"}, "original_steps"),
        ({"hard_count": 4}, "hard_count"),
        ({"soft_weight": 0.0, "soft_temperature": 0.1}, "soft_temperature"),
        ({"side_negatives": "language"}, "side_negatives"),
        ({"to_bank_weight": 0.0, "from_bank_weight": 0.0, "temperature": 0.1}, "temperature"),
    ],
    "teacher_similarity": [
        ({"question_weight": 0.0, "passage_weight": 0.0}, "has no loss"),
        ({"temperature": 0.0}, "temperature: .*found 0.0"),
        ({"teacher_temperature": -1.0}, "teacher_temperature: .*found -1.0"),
        ({"passage_prompt": "passage: "}, "passage_prompt"),
    ],
    "cross_encoder": [({"head_dropout": 1}, "head_dropout: .*found 1")],
    "infonce": [({"temperature": 0.0}, r"temperature: .*found 0\.0")],
    "labse": [
        ({"temperature": 0.0}, "temperature: .*found 0.0"),
        ({"margin": -0.1}, "margin: .*found -0.1"),
    ],
    "calibrated": [
        ({"decay": 1.1}, "decay: .*found 1.1"),
        ({"decay_steps": -1}, "decay_steps: .*found -1"),
        ({"distillation_weight": 0}, "distillation_weight: .*found 0"),
        ({"teacher": "frozen", "decay": 0.9}, "decay has no effect .*teacher = 'frozen'"),
        ({"english_weight": 0.5}, "english_weight .*english_through_student = false"),
    ],
    "dap": [
        ({"tr_weight": 0.0, "rtl_weight": 0.0}, "has no loss"),
        ({"rtl_weight": -0.1}, "rtl_weight: .*found -0.1"),
        ({"temperature": 0.0}, "temperature"),
        ({"head_layers": 0}, "head_layers: .*found 0"),
        ({"reconstruct": 0.0}, "reconstruct: .*found 0.0"),
        ({"rtl_weight": 0.0, "head_layers": 1}, "head_layers has no effect with rtl_weight = 0"),
        ({"tr_weight": 0.0, "ranking": "both"}, "ranking .*tr_weight = 0"),
        ({"languages": ("de",)}, "languages .*direction = 'to_pivot'"),
    ],
    "distill": [
        ({"translation_weight": 0.0, "original_weight": 0.0}, "has no loss"),
        ({"original_weight": -1.0}, "original_weight: .*found -1.0"),
    ],
    "ems": [
        ({"generative": "none", "contrastive": "none"}, "has no loss"),
        ({"temperature": 0.0}, "temperature: .*found 0.0"),
        ({"xtr_weight": -1.0}, "xtr_weight"),
        ({"tag_dropout": 1.0}, "tag_dropout"),
        ({"generative": "ugt", "code_masking": True}, "code_masking .*'ugt'"),
        (
            {"generative": "none", "shared_embedding": True},
            "shared_embedding .*generative = 'none'",
        ),
        ({"generative": "none", "language_dim": 64}, "language_dim has no effect"),
        ({"contrastive": "none", "mlp": False}, "mlp .*contrastive = 'none'"),
        ({"contrastive": "none", "temperature": 0.2}, "temperature has no effect"),
        ({"margin": 0.2}, "margin .*contrastive .*'ams'"),
        ({"mlp": False, "projection_dim": 64}, "projection_dim .*mlp = false"),
        ({"language_tag": False, "languages": ("deu_Latn",)}, "languages .*language_tag = false"),
    ],
    "infoxlm": [
        ({"xlco_weight": 0.0}, "xlco_weight: .*found 0.0"),
        ({"temperature": 0.0}, "temperature"),
        ({"queue_size": 0}, "queue_size: .*found 0"),
        ({"decay": 1.0}, "decay: .*found 1.0"),
        ({"contrast_depth": 0.0}, "contrast_depth: .*found 0.0"),
        ({"mask_ratio": 2.0}, "mask_ratio"),
        ({"mlm_weight": 0.0, "mlm_text": "monolingual"}, "mlm_text has no effect"),
        ({"tlm_weight": 0.0, "mlm_weight": 0.0, "transform": False}, "transform has no effect"),
    ],
    "laser": [
        ({"token_dim": 0}, "token_dim: .*found 0"),
        ({"decoder_layers": 0}, "decoder_layers: .*found 0"),
        ({"language_dim": -1}, "language_dim: .*found -1"),
        ({"dropout": 1.0}, "dropout: .*found 1.0"),
        ({"autoregressive": False}, "set decoder = 'transformer'"),
        ({"decoder": "transformer", "output_dim": 8}, "output_dim .*decoder = 'transformer'"),
        ({"decoder_heads": 4}, "decoder_heads .*decoder = 'lstm'"),
        ({"language_dim": 0, "languages": ("de",)}, "languages .*language_dim = 0"),
    ],
    "mexma": [
        ({"mlm_weight": -1.0}, "mlm_weight: .*found -1.0"),
        ({"koleo_weight": -0.1}, "koleo_weight: .*found -0.1"),
        ({"mlm_weight": 0, "align_weight": 0}, "has no loss"),
        ({"mask_ratio": 0.0}, "mask_ratio: .*found 0.0"),
        ({"mask_ratio": 1.1}, "mask_ratio: .*found 1.1"),
        ({"temperature": 0.0, "alignment": "contrastive"}, "temperature: .*found 0.0"),
        ({"symmetrical": False}, "symmetrical = false"),
        ({"symmetrical": False, "align_weight": 0}, "symmetrical = false"),
        ({"align_weight": 0, "alignment": "contrastive"}, "alignment .*align_weight = 0"),
        ({"temperature": 0.1}, "temperature .*alignment .*'contrastive'"),
        (
            {"koleo_weight": 0, "koleo_distinct": True},
            "koleo_distinct has no effect with koleo_weight = 0",
        ),
        (
            {"mlm_weight": 0, "token_gradients": False},
            "token_gradients has no effect with mlm_weight = 0",
        ),
        ({"mlm_weight": 0, "head": UnmaskingHeadConfig(layers=2)}, "head .*mlm_weight = 0"),
        ({"mlm_weight": 0, "mask": "always"}, "mask .*mlm_weight = 0"),
    ],
    "multilingual_ir": [
        ({"semantic_weight": -0.1}, "semantic_weight: .*found -0.1"),
        ({"temperature": 0.0}, "temperature: .*found 0.0"),
        ({"semantic_temperature": -1.0}, "semantic_temperature: .*found -1.0"),
        (
            {"semantic_weight": 0.0, "semantic_temperature": 0.2},
            "semantic_temperature has no effect with semantic_weight",
        ),
        ({"language_weight": 0.0, "monolingual": True}, "monolingual .*language_weight = 0"),
        (
            {"language_weight": 0.0, "language_reduction": "literal"},
            "language_reduction has no effect",
        ),
    ],
    "retromae": [
        ({"encoder_weight": -1.0}, "encoder_weight: .*found -1.0"),
        ({"decoder_weight": 0.0}, "decoder_weight: .*found 0.0"),
        ({"decoder_layers": 0}, "decoder_layers: .*found 0"),
        ({"encoder_ratio": 0.0}, "encoder_ratio: .*found 0.0"),
        ({"decoder_ratio": 1.1}, "decoder_ratio: .*found 1.1"),
        ({"decoder_layers": 2}, "decoder_layers: .*enhanced"),
    ],
    "tlm": [
        ({"tlm_weight": 0.0, "mlm_weight": 0.0}, "has no loss"),
        ({"tlm_weight": -1.0}, "tlm_weight: .*found -1.0"),
        ({"mask_ratio": 0.0}, "mask_ratio: .*found 0.0"),
        ({"mask_ratio": 1.5}, "mask_ratio: .*found 1.5"),
        (
            {"mlm_weight": 0.0, "mlm_text": "monolingual"},
            "mlm_text has no effect with mlm_weight = 0",
        ),
        (
            {"tlm_weight": 0.0, "reset_positions": False},
            "reset_positions has no effect with tlm_weight = 0",
        ),
    ],
}


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [(method, *case) for method, cases in REFUSED.items() for case in cases],
)
def test_senseless_options_are_errors(method, options, message):
    with pytest.raises(ConfigError, match=message):
        resolve_name(METHODS, method).Config(**options)


@dataclass(frozen=True, kw_only=True)
class StrangersConfig:
    """A ``Config`` of a package outside of this repository, without bounds."""

    sharpness: float = 1.0
    count: int = 1
    narrow: Annotated[int, Between(0, 10**15)] = 1


@pytest.mark.parametrize("name", ["sharpness", "count"])
def test_numbers_of_strangers_methods_have_a_bound(name):
    assert read_options(StrangersConfig, {name: -(10**12)}, where="m").narrow == 1
    assert read_options(StrangersConfig, {"narrow": 10**15}, where="m").count == 1
    for value in (10**12 + 1, -(10**12) - 1):
        with pytest.raises(ConfigError, match=f"m: {name}: .*1000000000000"):
            read_options(StrangersConfig, {name: value}, where="m")


def test_terms_of_a_combination_have_the_bounds_of_their_methods():
    with pytest.raises(ConfigError, match=r"terms\.a: projection_dim: .*1099511627776"):
        CombinationConfig(terms={"a": {"method": "ems", "projection_dim": 2**40}})
