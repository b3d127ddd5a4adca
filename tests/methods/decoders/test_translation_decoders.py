"""The decoders that translate from one vector, against loops over time steps and torch's LSTM
cell."""

from __future__ import annotations

import pytest
import torch

from interlingua.methods.decoders.translation_decoders import LstmDecoder, TransformerDecoder
from tests.encoder.naive import naive_layer

LENGTHS = [3, 5, 1, 3]
CU = torch.tensor([0, 3, 8, 9, 12])
SIZES = {"token_dim": 3, "language_dim": 2, "layers": 2, "dropout": 0.0}


def example(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randint(0, 11, (12,), generator=generator)
    # Vectors of 5, languages of 2.
    return inputs, torch.randn(4, 7, generator=generator, dtype=dtype)


def predicted(decoder, inputs, told):
    return decoder(inputs, decoder.arranged(CU), told)


def lstm(**changes):
    torch.manual_seed(0)
    return LstmDecoder(5, 11, hidden_dim=6, output_dim=4, **{**SIZES, **changes})


@torch.no_grad()
def test_lstm_is_its_recurrence_sentence_by_sentence():
    decoder = lstm()
    inputs, told = example()
    cells = []
    for layer in range(2):
        cell = torch.nn.LSTMCell(10 if layer == 0 else 6, 6)
        for name, weight in cell.named_parameters():
            weight.copy_(getattr(decoder.lstm, f"{name}_l{layer}"))
        cells.append(cell)
    expected = []
    for row, ids in enumerate(inputs.split(LENGTHS)):
        first = decoder.initial(told[row, :5]).view(2, 2, 6)  # (layer, hidden or cell, width)
        states = [(first[layer, 0], first[layer, 1]) for layer in range(2)]
        for token in ids:
            x = torch.cat([decoder.tokens.weight[token], told[row]])
            for layer, cell in enumerate(cells):
                states[layer] = cell(x, states[layer])
                x = states[layer][0]
            expected.append(decoder.narrow(x))
    torch.testing.assert_close(predicted(decoder, inputs, told), torch.stack(expected))


class Recorder(torch.nn.Module):
    """Replacement for dropout that records the widths of its inputs."""

    def __init__(self):
        super().__init__()
        self.widths = []

    def forward(self, x):
        self.widths.append(x.shape[-1])
        return x


def test_dropout_is_on_tokens_states_and_outputs_and_between_layers():
    inputs, told = example()
    decoder = lstm(dropout=0.3)
    assert (decoder.dropout.p, decoder.lstm.dropout) == (0.3, 0.3)
    assert lstm(dropout=0.3, layers=1).lstm.dropout == 0
    decoder.dropout = Recorder()
    predicted(decoder, inputs, told)
    assert decoder.dropout.widths == [3, 6, 4]
    other = transformer()
    other.dropout = Recorder()
    predicted(other, inputs, told)
    assert other.dropout.widths == [3]


def test_lstm_begins_as_laser_s():
    weights = torch.cat([weight.detach().flatten() for weight in lstm().parameters()])
    assert weights.abs().max() <= 0.1
    assert abs(float(weights.std()) - 0.1 / 3**0.5) < 5e-3


def transformer(*, autoregressive=True):
    torch.manual_seed(0)
    sizes = {**SIZES, "max_tokens": 6, "inner_dim": 8, "heads": 2}
    return TransformerDecoder(5, 11, autoregressive=autoregressive, **sizes)


@pytest.mark.parametrize("autoregressive", [True, False])
@torch.no_grad()
def test_transformer_layer_by_layer(autoregressive):
    decoder = transformer(autoregressive=autoregressive)
    inputs, told = example()
    expected = []
    for row, ids in enumerate(inputs.split(LENGTHS)):
        x = decoder.positions.weight[: len(ids)]
        x = x + decoder.tokens.weight[ids] if autoregressive else x
        x = torch.cat([x, told[row].expand(len(ids), -1)], dim=1)
        shown = torch.ones(len(ids), len(ids), dtype=torch.bool)
        for layer in decoder.layers:
            x = naive_layer(layer, x, shown=shown.tril() if autoregressive else shown)
        expected.append(x)
    torch.testing.assert_close(
        predicted(decoder, inputs, told), torch.cat(expected), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("make", [lstm, transformer])
@torch.no_grad()
def test_what_is_told_depends_on_the_tokens_before_alone(make):
    decoder = make()
    inputs, told = example()
    later = inputs.clone()
    later[5] = (later[5] + 1) % 11  # third of five
    changed = (
        (predicted(decoder, inputs, told) != predicted(decoder, later, told))
        .any(dim=1)
        .nonzero()[:, 0]
        .tolist()
    )
    assert changed == [5, 6, 7]


@torch.no_grad()
def test_a_decoder_that_is_not_autoregressive_reads_no_tokens():
    decoder = transformer(autoregressive=False)
    inputs, told = example()
    assert decoder.tokens is None
    assert torch.equal(
        predicted(decoder, inputs, told), predicted(decoder, torch.zeros_like(inputs), told)
    )


@pytest.mark.parametrize("make", [lstm, transformer])
def test_gradients_reach_all_weights_and_the_vectors(make):
    decoder = make().double()
    inputs, told = example(torch.float64)
    told.requires_grad_()
    predicted(decoder, inputs, told).square().sum().backward()
    idle = [name for name, weight in decoder.named_parameters() if weight.grad is None]
    assert idle == ["output.weight", "output.bias"]
    assert (told.grad.abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize("make", [lstm, transformer])
def test_bfloat16_autocast_is_near_float32(make):
    decoder = make()
    inputs, told = example()
    exact = predicted(decoder, inputs, told)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = predicted(decoder, inputs, told)
        rough.float().square().sum().backward()
    torch.testing.assert_close(rough.float(), exact, rtol=0.05, atol=0.05)
