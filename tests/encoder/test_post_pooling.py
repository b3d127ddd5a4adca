from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.post_pooling import Dense, Normalize, PostPooling
from interlingua.errors import ConfigError
from interlingua.methods.dap import DAP, DAPConfig
from interlingua.methods.retromae import RetroMAE, RetroMAEConfig
from tests.encoder.builders import with_layers


def test_dense_is_weight_bias_and_activation():
    layer = Dense.of(np.array([[1.0, 2.0]]), np.array([0.5]))
    layer.activation = "tanh"
    assert layer(torch.tensor([[3.0, -1.0]])).item() == pytest.approx(np.tanh(1.5))


def test_dense_computes_in_float32_under_autocast():
    layer = Dense.of(np.array([[1.0]]), np.array([1e-4]))
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.tensor([[1.0]], dtype=torch.bfloat16)).item() == pytest.approx(1.0001)


@pytest.mark.parametrize("bias", [True, False])
def test_few_vectors_are_transformed_as_many_are(bias):
    """Check the different product for few vectors, used only without recorded gradients."""
    torch.manual_seed(0)
    layer, vectors = Dense(40, 30, bias=bias, activation="tanh"), torch.randn(5, 40)
    many = layer(vectors)
    for count in (0, 1, 2):
        assert layer(vectors[:count]).grad_fn is not None
        with torch.inference_mode():
            few = layer(vectors[:count])
        torch.testing.assert_close(few, many[:count].detach(), rtol=1e-5, atol=1e-6)


def test_normalize_keeps_the_zero_vector():
    found = Normalize()(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_widths_that_do_not_fit_are_refused(encoder):
    with pytest.raises(ConfigError, match=r"3 elements, .*expects 2"):
        PostPooling([Dense(4, 3), Dense(2, 2)])
    with pytest.raises(ConfigError, match="expects 5 elements"):
        Encoder(encoder.backbone, encoder.vocabulary, encoder.settings, PostPooling([Dense(5, 3)]))


def test_encoder_applies_layers_then_normalizes(encoder):
    torch.manual_seed(1)
    layers = Normalize(), Dense(encoder.hidden_size, 5, activation="tanh")
    deep = with_layers(encoder, *layers)
    texts = ["ru1 ru2", "de5", "?"]
    unit = torch.from_numpy(encoder.encode(texts))
    expected = torch.tanh(layers[1].linear(unit)).detach()
    assert deep.dim == 5
    assert deep.hidden_size == encoder.dim
    np.testing.assert_allclose(deep.encode(texts, normalize_embeddings=False), expected, atol=1e-6)
    np.testing.assert_allclose(
        deep.encode(texts), torch.nn.functional.normalize(expected), atol=1e-6
    )


def test_clone_and_digest_include_the_layers(encoder):
    deep = with_layers(encoder, Dense(encoder.dim, 4))
    copy = deep.clone()
    assert copy.digest() == deep.digest() != encoder.digest()
    copy.post_pooling[0].linear.bias.data.add_(1)
    assert copy.digest() != deep.digest()
    copy = deep.clone()
    copy.post_pooling[0].activation = "tanh"
    assert copy.digest() != deep.digest()


def test_layers_receive_gradients(encoder):
    deep = with_layers(encoder, Dense(encoder.dim, 4)).train()
    from interlingua.batches.tokens import TokenBatch

    batch = TokenBatch.from_lists(encoder.vocabulary.encode(["ru1", "de2 de3"]), ("", ""))
    for size in (None, 1):  # with GradCache too
        deep.zero_grad()
        deep.gradcache_sentences = size
        deep(batch).square().sum().backward()
        assert deep.post_pooling[0].linear.weight.grad.abs().sum() > 0


def test_methods_that_mix_widths_refuse_a_narrow_layer(encoder):
    narrow = with_layers(encoder, Dense(encoder.dim, 4))
    encoder.require_equal_widths()
    for method, config in ((RetroMAE, RetroMAEConfig()), (DAP, DAPConfig())):
        with pytest.raises(ConfigError, match="4 elements"):
            method(config, narrow)
