from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder.executors import compiled
from interlingua.encoder.executors.compiled import (
    CompiledBackbone,
    Int16Backbone,
    WeightLayout,
    fits_tiles,
    layout_of,
)
from interlingua.encoder.executors.inference import FrozenBackbone
from interlingua.encoder.executors.layers import freeze
from interlingua.encoder.modeling.backbone import ACTIVATIONS
from interlingua.encoder.modeling.families import FAMILIES
from interlingua.kernels import KERNEL_VARIANTS, library
from tests.covers import pairwise
from tests.encoder.naive import with_rounded_matrices
from tests.encoder.shapes import JINA_BERT, JINA_BERT_QK_NORM, MODERNBERT, states_of, tiny_backbone


@pytest.fixture(params=KERNEL_VARIANTS)
def variant(use_variant, request):
    """Each variant of the kernel that this processor runs."""
    use_variant(request.param)
    if library("layers") is None:
        pytest.skip(f"needs the compiled kernel and a processor that runs {request.param}")
    return request.param


needs_kernel = pytest.mark.usefixtures("variant")
BFLOATS = ("amx", "avx512")
"""Variants of x86-64 with products of bfloats."""
TILED = {"hidden_size": 128, "num_attention_heads": 4, "intermediate_size": 192}
"""A shape of whole tiles, which AMX multiplies otherwise than the other variants do."""
PAIRS_ERROR = 4e-5
"""Error of hidden states up to 3, with float32 multiplied as pairs of bfloats."""
SHAPES = {"any": {}, "tiled": TILED}
both_shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
OTHER_LAYERS = {
    "modernbert": MODERNBERT,
    "wide windows": {**MODERNBERT, "local_window": 40},
    "nomic_bert": {**FAMILIES["nomic_bert"].fixed, "hidden_act": "silu"},
    "gte": FAMILIES["gte"].fixed,
    "jina_bert": JINA_BERT,
    "jina_bert_qk_norm": JINA_BERT_QK_NORM,
    "norm first": {"norm_first": True},
}
"""Layers that are not BERT's."""
other_layers = pytest.mark.parametrize("layers", OTHER_LAYERS.values(), ids=OTHER_LAYERS)


def backbone_with(**changes):
    sizes = sized(96, 3, 144)
    return tiny_backbone(**{**sizes, **changes})


def sized(width, heads, inner, **changes):
    sizes = {"hidden_size": width, "num_attention_heads": heads, "intermediate_size": inner}
    return {**sizes, **changes}


@pairwise(
    variant=KERNEL_VARIANTS,
    activation=ACTIVATIONS.keys(),
    shape={
        **SHAPES,
        "64 by 1": sized(64, 1, 16),
        "80 by 5": sized(80, 5, 208),
        "192 by 4": sized(192, 4, 64),
        "128 by 2": sized(128, 2, 64),
        "128 by 1": sized(128, 1, 576),
        "one layer": sized(64, 2, 256, num_hidden_layers=1),
        "xlm-roberta": {
            "model_type": "xlm-roberta",
            "pad_token_id": 1,
            "type_vocab_size": 1,
            "max_position_embeddings": 400,
        },
        "bert": {"model_type": "bert", "type_vocab_size": 2, "num_hidden_layers": 1},
    },
)
def test_float32_is_the_backbone_for_every_activation_and_shape(
    variant, activation, shape, random_batch
):
    lengths = [1, 17, 4, 4, 90, 64, 65, 130, 16, 15]
    backbone, batch = backbone_with(hidden_act=activation, **shape), random_batch(lengths)
    states = states_of(CompiledBackbone(backbone, torch.float32), batch)
    bound = PAIRS_ERROR if variant == "amx" and fits_tiles(backbone.config) else 1e-5
    assert (states - states_of(backbone, batch)).abs().max() < bound


@needs_kernel
@both_shapes
def test_large_activations_neither_overflow_nor_vanish(shape, random_batch):
    backbone, batch = backbone_with(**shape), random_batch([5, 40])
    with torch.no_grad():
        for layer in backbone.layers:
            layer.query.weight.mul_(40)
            layer.intermediate.weight.mul_(60)
    states = states_of(CompiledBackbone(backbone, torch.float32), batch)
    expected = states_of(backbone, batch)
    assert torch.isfinite(states).all()
    assert F.cosine_similarity(states, expected).min() > 0.9999


@needs_kernel
@pairwise(
    variant=KERNEL_VARIANTS,
    shape=SHAPES,
    activation=ACTIVATIONS.keys(),
    bits={"bfloat16": (torch.bfloat16, 2e-5), "int8": (torch.int8, 2e-4)},
)
def test_fewer_bits_are_close(bits, activation, shape, random_batch):
    dtype, bound = bits
    backbone, batch = backbone_with(hidden_act=activation, **shape), random_batch([12, 3, 30])
    states = states_of(CompiledBackbone(backbone, dtype), batch)
    assert states.dtype == torch.float32
    cosines = F.cosine_similarity(states, states_of(backbone, batch))
    assert 1 - bound < cosines.min() < 1 - 1e-7


@pytest.fixture
def int16(variant):
    """The snapshot in int16, in each variant of the kernel that multiplies that."""
    if Int16Backbone.refusal(backbone_with(), torch.bfloat16) is not None:
        pytest.skip(f"{variant} multiplies no int16")
    return Int16Backbone


@pytest.mark.parametrize(
    "shape",
    [
        *({"hidden_act": activation} for activation in ACTIVATIONS),
        sized(16, 1, 16),
        sized(80, 5, 208),
        sized(384, 24, 1536),
        sized(256, 16, 512),
    ],
)
def test_int16_is_nearer_to_float32_than_bfloats(shape, int16, random_batch):
    backbone, batch = backbone_with(**shape), random_batch([17, 1, 64, 5, 12, 13, 33])
    expected = states_of(backbone, batch)
    gaps = [
        (states_of(form(backbone, torch.bfloat16), batch) - expected).norm() / expected.norm()
        for form in (int16, CompiledBackbone)
    ]
    assert 1e-6 < gaps[0] < min(1e-3, gaps[1] / 2)


def test_int16_takes_the_place_of_bfloats_in_int8(int16, random_batch):
    backbone, batch = backbone_with(num_hidden_layers=3), random_batch([17, 1, 64, 5])
    frozen = int16(backbone, torch.int8)
    bytes_type = compiled._TYPES[torch.int8]
    types = [(layer.qkv.type, layer.output.type) for layer in frozen._layers]
    assert types == [(bytes_type, bytes_type)] * 2 + [(compiled.INT16, bytes_type)]
    cosines = F.cosine_similarity(states_of(frozen, batch), states_of(backbone, batch))
    assert cosines.min() > 1 - 2e-4


@needs_kernel
@pairwise(
    variant=KERNEL_VARIANTS,
    kind={
        "int8": (CompiledBackbone, torch.int8),
        "int16 and int8": (Int16Backbone, torch.int8),
        "int16": (Int16Backbone, torch.bfloat16),
    },
    where=["word", "query.weight", "output.weight", "intermediate.bias"],
    bad=[float("nan"), float("inf")],
)
def test_whole_numbers_pass_on_what_is_no_number(kind, where, bad, random_batch):
    form, dtype = kind
    backbone, batch = backbone_with(num_hidden_layers=3), random_batch([7, 20, 5])
    if form.refusal(backbone, dtype) is not None:
        pytest.skip("this variant multiplies no int16")
    has_bad = torch.ones(len(batch.input_ids), dtype=torch.bool)
    with torch.no_grad():
        if where == "word":
            word = batch.input_ids[10]
            backbone.word_embeddings.weight[word] = bad
            with_word = (batch.input_ids == word).split(batch.lengths.tolist())
            has_bad = torch.cat([part.any().expand(len(part)) for part in with_word])
        else:
            backbone.layers[0].get_parameter(where).view(-1)[35] = bad
    states = states_of(form(backbone, dtype), batch)
    assert torch.equal(states.isfinite().all(1), ~has_bad)


@both_shapes
@needs_kernel
def test_bfloats_are_widened_where_they_are_not_multiplied(shape, random_batch):
    if layout_of(library("layers")).bfloats:
        pytest.skip("this variant multiplies bfloats")
    backbone, batch = backbone_with(**shape), random_batch([1, 17, 4, 4, 90])
    states = states_of(CompiledBackbone(backbone, torch.bfloat16), batch)
    rounded = CompiledBackbone(with_rounded_matrices(backbone), torch.float32)
    assert torch.equal(states, states_of(rounded, batch))


@needs_kernel
@pytest.mark.parametrize(
    "shape",
    [
        {},
        sized(16, 1, 16),
        sized(80, 5, 208),
        sized(384, 12, 1536),
        sized(256, 2, 512),
    ],
)
def test_bytes_are_those_of_plain_torch(shape, random_batch):
    """Allow a rounding difference of one step, which occurs in bfloat16 attention."""
    backbone, batch = backbone_with(**shape), random_batch([17, 1, 64, 5, 12, 13, 33])
    states = states_of(CompiledBackbone(backbone, torch.int8), batch)
    plain = states_of(FrozenBackbone(backbone, torch.int8), batch)
    assert F.cosine_similarity(states, plain).min() > 1 - 1e-4


FORMS = {
    "float32": (CompiledBackbone, torch.float32, 1e-6),
    "bfloat16": (CompiledBackbone, torch.bfloat16, 1e-5),
    "int8": (CompiledBackbone, torch.int8, 1e-4),
    "int16": (Int16Backbone, torch.bfloat16, 1e-6),
    "int16 and int8": (Int16Backbone, torch.int8, 1e-4),
}
"""Class, dtype, and how far from 1 a cosine with the plain states may be."""


@needs_kernel
@pairwise(variant=KERNEL_VARIANTS, shape=SHAPES, kind=FORMS)
def test_a_sentence_is_the_same_in_every_batch_to_the_last_bit(kind, shape, random_batch):
    form, dtype, _ = kind
    lengths = [7, 300, 250, 2, 96, 97, 33]  # more than one group of sentences
    backbone, batch = backbone_with(**shape), random_batch(lengths)
    if form.refusal(backbone, dtype) is not None:
        pytest.skip("this variant multiplies no int16, or this shape by tiles")
    frozen = form(backbone, dtype)
    together = states_of(frozen, batch)
    for start, stop in zip(
        batch.cu_seqlens[:-1].tolist(), batch.cu_seqlens[1:].tolist(), strict=True
    ):
        alone = frozen(batch.input_ids[start:stop], torch.tensor([0, stop - start]))
        assert torch.equal(alone, together[start:stop])


@needs_kernel
@pytest.mark.parametrize(
    "layers",
    [
        *({**layers, **sized(64, 2, 96)} for layers in OTHER_LAYERS.values()),
        # Heads that end with half a panel, with windows and with slopes.
        *({"local_layers": (0, 2), "local_window": 4, **sized(96, heads, 144)} for heads in (2, 6)),
        {"positions": "alibi", **sized(240, 3, 96)},
        *({**MODERNBERT, "local_window": window, **sized(64, 2, 96)} for window in (0, 1, 63)),
        {"positions": "rotary", "type_vocab_size": 2, **sized(64, 1, 96)},
    ],
)
def test_float32_is_the_backbone_for_layers_of_every_kind(layers, random_batch):
    """Use tens of tokens, hundreds, and one."""
    backbone = backbone_with(**layers)
    batch = random_batch([1, 17, 4, 4, 90, 64, 65, 130, 16, 15, 300])
    with torch.no_grad():
        plain = states_of(backbone, batch)
    assert (states_of(CompiledBackbone(backbone, torch.float32), batch) - plain).abs().max() < 1e-5


@needs_kernel
def test_scores_outside_of_the_window_do_not_count_however_large(random_batch):
    backbone = backbone_with(local_layers=(0, 1, 2, 3), local_window=4, **sized(64, 2, 96))
    for layer in backbone.layers:
        layer.query.weight.data *= 60
    # Of the last length a token sees all but one of the others.
    batch = random_batch([90, 300, 6])
    with torch.no_grad():
        plain = states_of(backbone, batch)
    states = states_of(CompiledBackbone(backbone, torch.float32), batch)
    assert F.cosine_similarity(states, plain).min() > 1 - 1e-5


@other_layers
def test_variants_give_the_same_float32_for_layers_of_every_kind(layers, states_by, random_batch):
    backbone, batch = backbone_with(**{**layers, **sized(64, 2, 96)}), random_batch([7, 130, 1])
    # A variant with tiles takes the way of vectors for these.
    first, *others = states_by(KERNEL_VARIANTS, backbone, torch.float32, batch)
    assert all(torch.equal(states, first) for states in others)


@needs_kernel
@pairwise(variant=KERNEL_VARIANTS, layers=OTHER_LAYERS, kind=FORMS)
def test_layers_of_every_kind_are_close_and_the_same_by_threads_and_alone(
    kind, layers, random_batch, set_threads, monkeypatch
):
    form, dtype, bound = kind
    backbone = backbone_with(**{**layers, **sized(64, 2, 96)})
    if form.refusal(backbone, dtype) is not None:
        pytest.skip("this variant multiplies no int16")
    frozen, batch = form(backbone, dtype), random_batch([40, 9, 130])
    with torch.no_grad():
        plain = states_of(backbone, batch)
    set_threads(1)
    states = states_of(frozen, batch)
    assert F.cosine_similarity(states, plain).min() > 1 - bound
    alone = frozen(batch.input_ids[40:49], torch.tensor([0, 9]))
    assert torch.equal(states[40:49], alone)
    monkeypatch.setattr(compiled, "MIN_PRODUCTS", 1)
    set_threads(3)
    assert torch.equal(states_of(frozen, batch), states)


@needs_kernel
@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (sized(96, 4, 96, positions="rotary"), "a width is not a multiple of 16"),
        (sized(48, 1, 96, positions="rotary"), "half the width of a head"),
        (sized(64, 2, 72, gated=True), "a width is not a multiple of 16"),
    ],
)
def test_layers_that_do_not_fill_registers_are_refused(shape, reason):
    assert reason in CompiledBackbone.refusal(backbone_with(**shape), torch.float32)


@needs_kernel
def test_what_goes_before_a_gate_has_to_fill_panels(random_batch):
    panel = layout_of(library("layers")).panel
    backbone = backbone_with(**sized(64, 2, 112, gated=True))
    refusal = CompiledBackbone.refusal(backbone, torch.float32)
    assert (refusal is None) == (112 % panel == 0)
    if refusal is None:
        batch = random_batch([5, 40])
        with torch.no_grad():
            plain = states_of(backbone, batch)
        assert (
            states_of(CompiledBackbone(backbone, torch.float32), batch) - plain
        ).abs().max() < 1e-5


def test_a_config_does_not_decide_how_much_memory_angles_take():
    """Check a learned table, which has weights. A number in a config costs an attacker nothing."""
    shape = sized(64, 2, 96, positions="rotary", max_position_embeddings=1 << 20)
    assert "rotary table" in CompiledBackbone.refusal(backbone_with(**shape), torch.float32)


def test_tiles_are_for_models_that_have_layers():
    assert fits_tiles(backbone_with(**TILED).config)
    assert not fits_tiles(backbone_with(**TILED, num_hidden_layers=0).config)
    assert not fits_tiles(backbone_with(**TILED, norm_first=True).config)


@needs_kernel
@pairwise(
    variant=KERNEL_VARIANTS, shape=SHAPES, lengths=[[0], [0, 0], [600, 0], [0, 600], [3, 0, 5]]
)
def test_empty_sentences_have_no_states(lengths, shape, random_batch, set_threads, monkeypatch):
    frozen = CompiledBackbone(backbone_with(**shape, max_position_embeddings=600), torch.float32)
    monkeypatch.setattr(compiled, "MIN_PRODUCTS", 1)
    ids = random_batch([max(1, sum(lengths))]).input_ids[: sum(lengths)]
    bounds = torch.tensor([0, *lengths]).cumsum(0)
    expected = frozen(ids, bounds.unique())
    for threads in (1, 2):
        set_threads(threads)
        assert torch.equal(frozen(ids, bounds), expected)


@needs_kernel
@pairwise(variant=KERNEL_VARIANTS, shape=SHAPES, kind=FORMS)
def test_several_threads_change_no_bit(kind, shape, random_batch, set_threads, monkeypatch):
    """Use more threads than cores, tokens or heads too."""
    form, dtype, _ = kind
    backbone = backbone_with(**shape)
    if form.refusal(backbone, dtype) is not None:
        pytest.skip("this variant multiplies no int16, or this shape by tiles")
    frozen = form(backbone, dtype)
    monkeypatch.setattr(compiled, "MIN_PRODUCTS", 1)
    # One token; more than one group of sentences.
    for lengths, counts in (([1], [16]), ([7, 297, 2, 97, 130], [2, 5])):
        batch = random_batch(lengths)
        set_threads(1)
        alone = states_of(frozen, batch)
        for threads in counts:
            set_threads(threads)
            assert torch.equal(states_of(frozen, batch), alone)


@needs_kernel
def test_a_batch_has_as_many_threads_as_it_is_worth(random_batch, set_threads, monkeypatch):
    backbone = backbone_with(num_hidden_layers=2)
    frozen = CompiledBackbone(backbone, torch.float32)
    asked = []
    kernel = frozen._kernel

    class Kernel:
        def encode(self, *arguments):
            asked.append(arguments[-1].value)
            return kernel.encode(*arguments)

    frozen._kernel = Kernel()
    set_threads(5)
    # Two layers of 4 x 96 x 96 and 2 x 96 x 144 weights.
    monkeypatch.setattr(compiled, "MIN_PRODUCTS", 2 * (4 * 96 * 96 + 2 * 96 * 144) * 10)
    for length in (9, 10, 29, 300):
        states_of(frozen, random_batch([length]))
    assert asked == [1, 1, 2, 5]


@pytest.fixture
def states_by(use_variant):
    """A function that computes with each of the variants that this processor runs."""

    def compute(variants, backbone, dtype, batch, form=CompiledBackbone):
        found = []
        for name in variants:
            use_variant(name)
            if form.refusal(backbone, dtype) is None:
                found.append(states_of(form(backbone, dtype), batch))
        if len(found) < 2:
            pytest.skip(f"needs a processor that runs two of {variants}")
        return found

    return compute


@pytest.mark.parametrize("shape", [{}, sized(80, 5, 208)])
def test_variants_give_the_same_float32_to_the_last_bit(shape, states_by, random_batch):
    """Check equal order of sums within variants. Processors may differ."""
    batch = random_batch([7, 300, 1, 33, 16])
    first, *others = states_by(KERNEL_VARIANTS, backbone_with(**shape), torch.float32, batch)
    assert all(torch.equal(states, first) for states in others)


@pytest.mark.parametrize("shape", [{}, sized(80, 5, 208)])
@pytest.mark.parametrize(
    ("dtype", "variants"),
    # avx2 rounds the bytes of rows by scales of its own.
    [(torch.bfloat16, KERNEL_VARIANTS), (torch.int8, ("avx512", "avx512vnni", "avxvnni"))],
)
def test_variants_give_the_same_int16_to_the_last_bit(
    dtype, variants, shape, states_by, random_batch
):
    batch = random_batch([7, 300, 1, 33, 16])
    first, *others = states_by(variants, backbone_with(**shape), dtype, batch, Int16Backbone)
    assert all(torch.equal(states, first) for states in others)


@pytest.mark.parametrize(
    ("dtype", "gap"), [(torch.float32, 1e-10), (torch.bfloat16, 2e-5), (torch.int8, 1e-4)]
)
def test_tiles_give_what_vectors_give_to_rounding(dtype, gap, states_by, random_batch):
    """Allow for other orders of sums, float32 as pairs of bfloats, and unshifted powers."""
    batch = random_batch([7, 300, 1, 33, 16])
    tiles, vectors = states_by(BFLOATS, backbone_with(**TILED), dtype, batch)
    assert not torch.equal(tiles, vectors)
    assert F.cosine_similarity(tiles.double(), vectors.double()).min() > 1 - gap


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_tiles_pass_on_what_is_no_number(bad, use_variant, random_batch):
    """Check that NaN stays in its sentence, although blocks of rows reach into the next one."""
    use_variant("amx")
    if library("layers") is None:
        pytest.skip("needs a processor with AMX")
    backbone, batch = backbone_with(**TILED), random_batch([7, 20, 5])
    with torch.no_grad():
        backbone.word_embeddings.weight[batch.input_ids[10]] = bad
    has_bad = (batch.input_ids == batch.input_ids[10]).split(batch.lengths.tolist())
    for dtype in (torch.float32, torch.bfloat16, torch.int8):
        states = states_of(CompiledBackbone(backbone, dtype), batch)
        for part, is_bad in zip(states.split(batch.lengths.tolist()), has_bad, strict=True):
            assert part.isfinite().all() == (not is_bad.any()), dtype


@pytest.mark.parametrize(
    ("bfloats", "bytes_to_bfloats", "expected"),
    [
        (False, False, ["float32", "float32", "float32"]),
        (True, False, ["float32", "bfloat16", "float32"]),
        (True, True, ["float32", "bfloat16", "bfloat16"]),
    ],
)
def test_activations_are_what_all_products_can_take(bfloats, bytes_to_bfloats, expected):
    layout = WeightLayout(panel=16, bfloats=bfloats, bytes_to_bfloats=bytes_to_bfloats)
    dtypes = (torch.float32, torch.bfloat16, torch.int8)
    between = [str(layout.between(dtype)).removeprefix("torch.") for dtype in dtypes]
    assert between == expected


@pytest.mark.parametrize(
    "variants",
    [("avx512vnni", "avxvnni"), ("i8mm", "avx2"), ("i8mm", "dotprod")],
    ids="-".join,
)
def test_bytes_are_the_same_by_other_instructions(variants, states_by, random_batch):
    backbone = backbone_with(hidden_size=64, num_attention_heads=1)
    assert torch.equal(*states_by(variants, backbone, torch.int8, random_batch([5, 40])))


@needs_kernel
def test_ids_and_lengths_are_checked_before_memory_is(random_batch):
    frozen = CompiledBackbone(backbone_with(max_position_embeddings=20), torch.float32)
    with pytest.raises(IndexError, match="from 0 to 99, found 5 to 100"):
        frozen(torch.tensor([5, 100]), torch.tensor([0, 2]))
    with pytest.raises(IndexError, match=r"21 tokens, .*20"):
        frozen(torch.ones(21, dtype=torch.int64), torch.tensor([0, 21]))
    assert frozen(torch.tensor([], dtype=torch.int64), torch.tensor([0])).shape == (0, 96)


@pytest.mark.parametrize(
    "starts", [[0, 4], [0, 2], [0, 4, 3], [1, 3], [-1, 3], [0, 5, 3], [0, 3, 2, 3], []]
)
def test_wrong_boundaries_do_not_reach_the_kernel(monkeypatch, starts):
    """Check without the kernel, which must not be called."""
    frozen = CompiledBackbone(backbone_with(), torch.float32)

    class Kernel:
        def __getattr__(self, name):
            pytest.fail("the kernel was called")

    monkeypatch.setattr(frozen, "_kernel", Kernel())
    with pytest.raises(ValueError, match="cu_seqlens"):
        frozen(torch.ones(3, dtype=torch.int64), torch.tensor(starts, dtype=torch.int64))


def test_the_kernel_is_taken_where_it_can_be(monkeypatch):
    fitting, other = backbone_with(), backbone_with(hidden_size=24)
    kernel = FrozenBackbone if library("layers") is None else CompiledBackbone
    for dtype in (torch.float32, torch.int8):
        assert type(freeze(fitting, dtype)) is kernel
        assert type(freeze(other, dtype)) is FrozenBackbone
    assert CompiledBackbone.refusal(fitting, torch.float16) == "float16 is not supported"
    monkeypatch.setattr(compiled, "library", lambda name: None)
    for dtype in (torch.float32, torch.int8):
        assert type(freeze(fitting, dtype)) is FrozenBackbone
