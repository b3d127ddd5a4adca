"""Decoders that translate using only a sentence's vector: LASER's LSTM, and a transformer.

They are used in training only.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from interlingua.batches.packing import LengthGroups, length_groups
from interlingua.batches.sentences import Tails
from interlingua.encoder.modeling.attention import Layout
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.methods.decoders.visible import Visible, VisibleLayer, causal
from interlingua.runtime.devices import on_device

INITIAL = 0.1
"""Bound of the uniform distribution that LASER's decoder starts from."""


class LstmArrangement(NamedTuple):
    """The tokens of packed sentences in the order in which an LSTM reads them."""

    rows: Int64[Tensor, " t"]
    """Number of the sentence of each token, in the batch's order."""
    order: Int64[Tensor, " t"]
    """``x[order]`` has the tokens step by step, and in each step the longest sentences first."""
    back: Int64[Tensor, " t"]
    """``x[order][back]`` is ``x`` again."""
    longest_first: Int64[Tensor, " b"]
    """The sentences by length."""
    sizes: tuple[int, ...]
    """Number of sentences that still have a token in each step."""


class TransformerArrangement(NamedTuple):
    """The tokens of packed sentences in the order in which attention reads them."""

    rows: Int64[Tensor, " t"]
    """Number of the sentence of each token, in the batch's order."""
    groups: LengthGroups
    """Sentences of equal length."""


class LstmDecoder(nn.Module):
    """LASER's decoder (Artetxe and Schwenk 2019): an LSTM over the sentence's vector.

    It reads the vector at every step. Its first state is a linear map of the sentence's vector;
    each input is [token; sentence; language].

    Args:
        dim: width D of sentence vectors.
        vocab_size: words that can be predicted.
        token_dim: width E of its own token embeddings.
        language_dim: width L of the target language's vector; may be 0.
        hidden_dim: width of the LSTM's state.
        output_dim: width of the vectors that are compared with words.
        layers: of the LSTM.
        dropout: probability of zeroing an element of token embeddings and states.
    """

    def __init__(
        self,
        dim: int,
        vocab_size: int,
        *,
        token_dim: int,
        language_dim: int,
        hidden_dim: int,
        output_dim: int,
        layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, token_dim)
        self.initial = nn.Linear(dim, 2 * layers * hidden_dim)
        # torch warns if dropout between layers is set for a single layer.
        lstm_dropout = dropout if layers > 1 else 0.0
        width = token_dim + dim + language_dim
        self.lstm = nn.LSTM(width, hidden_dim, layers, dropout=lstm_dropout)
        self.narrow = nn.Linear(hidden_dim, output_dim)
        self.output = nn.Linear(output_dim, vocab_size)
        self.dropout = nn.Dropout(dropout)
        for weight in self.parameters():
            nn.init.uniform_(weight, -INITIAL, INITIAL)

    def arranged(self, cu_seqlens: Int[Tensor, " b+1"]) -> LstmArrangement:
        """Return the order in which ``forward`` reads the tokens of packed sentences.

        Args:
            cu_seqlens: where each sentence starts, and the total at the end; on the host.
        """
        # torch's PackedSequence has the tokens step by step, and in each step the longest sentences
        # first. So token j of the sentence of rank r gets the key j * B + r, and is sorted by it.
        lengths = cu_seqlens.diff().long()
        longest_first = lengths.argsort(descending=True, stable=True)
        rank = longest_first.argsort()
        tokens = Tails.of(cu_seqlens, skip=0)
        order = (tokens.positions * len(lengths) + rank[tokens.rows]).argsort()
        sizes = tuple(tokens.positions.bincount().tolist())
        return LstmArrangement(tokens.rows, order, order.argsort(), longest_first, sizes)

    def forward(
        self,
        inputs: Int64[Tensor, " t"],
        arrangement: LstmArrangement,
        condition: Float[Tensor, "b d+l"],
    ) -> Float[Tensor, "t o"]:
        """Compute the vectors to multiply the output embeddings by.

        Inner products plus bias are the logits of the next tokens.

        Args:
            inputs: the tokens before those to be predicted, packed.
            arrangement: of the sentences, see ``arranged``.
            condition: the sentences' vectors, each followed by the language's vector.
        """
        device = condition.device
        inputs = on_device(inputs, device)
        rows = on_device(arrangement.rows, device)
        order = on_device(arrangement.order, device)
        back = on_device(arrangement.back, device)
        longest_first = on_device(arrangement.longest_first, device)
        x = torch.cat([self.dropout(self.tokens(inputs)), condition[rows]], dim=1)[order]
        # The first hidden and cell state of each layer, from the sentence's vector without the
        # language behind it; (layers, B, H) each.
        initial = self.initial(condition[:, : self.initial.in_features])
        state = initial.view(len(condition), self.lstm.num_layers, 2, -1)[longest_first]
        hidden, cell = state.permute(2, 1, 0, 3).contiguous().to(x.dtype).unbind(0)
        steps = PackedSequence(x, torch.tensor(arrangement.sizes))
        states = self.lstm(steps, (hidden, cell))[0].data[back]
        features: Tensor = self.dropout(self.narrow(self.dropout(states)))
        return features


class TransformerDecoder(nn.Module):
    """A transformer that is shown the sentence's vector with each token: ``laser_transformer``.

    It is like fairseq's decoder of that name. Its inputs are [token + position; sentence;
    language]. It has no cross-attention, because there is only one vector to attend to. An
    autoregressive decoder shows each token the tokens before it. A decoder that is not
    autoregressive reads no tokens; each position is shown all positions.

    Args:
        dim: width D of sentence vectors.
        vocab_size: words that can be predicted.
        max_tokens: number of positions.
        token_dim: width E of its own token embeddings.
        language_dim: width L of the target language's vector; may be 0.
        inner_dim: width of the feed-forward blocks.
        layers: number of layers.
        heads: attention heads of a layer; must divide E + D + L.
        dropout: probability of zeroing an activation, and an attention weight.
        autoregressive: whether it reads the tokens before the one that it predicts.
    """

    def __init__(
        self,
        dim: int,
        vocab_size: int,
        *,
        max_tokens: int,
        token_dim: int,
        language_dim: int,
        inner_dim: int,
        layers: int,
        heads: int,
        dropout: float,
        autoregressive: bool,
    ) -> None:
        super().__init__()
        width = token_dim + dim + language_dim
        config = BackboneConfig(
            vocab_size=vocab_size,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=inner_dim,
            hidden_act="relu",
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
        )
        self.tokens: nn.Embedding | None = None
        if autoregressive:
            self.tokens = nn.Embedding(vocab_size, token_dim)
        self.positions = nn.Embedding(max_tokens, token_dim)
        self.layers = nn.ModuleList(VisibleLayer(config.layer_spec()) for _ in range(layers))
        self.output = nn.Linear(width, vocab_size)
        self.dropout = nn.Dropout(dropout)

    def arranged(self, cu_seqlens: Int[Tensor, " b+1"]) -> TransformerArrangement:
        """Return the order in which ``forward`` reads the tokens of packed sentences.

        Args:
            cu_seqlens: where each sentence starts, and the total at the end; on the host.
        """
        return TransformerArrangement(Tails.of(cu_seqlens, skip=0).rows, length_groups(cu_seqlens))

    def forward(
        self,
        inputs: Int64[Tensor, " t"],
        arrangement: TransformerArrangement,
        condition: Float[Tensor, "b d+l"],
    ) -> Float[Tensor, "t w"]:
        """Compute the vectors to multiply the output embeddings by, see ``LstmDecoder.forward``."""
        device = condition.device
        layout = Layout.by_groups(arrangement.groups, device)
        rows = on_device(arrangement.rows, device)
        x = self.positions(layout.positions)
        # Without tokens there is nothing to hide: each position sees all others.
        visible: Visible | None = None
        if self.tokens is not None:
            x = x + self.tokens(layout.arrange(on_device(inputs, device)))
            visible = causal
        # Each token with its sentence and the language.
        x = self.dropout(x)
        conditions = F.embedding(layout.arrange(rows), condition).to(x.dtype)
        x = torch.cat([x, conditions], dim=1)
        for layer in self.layers:
            x = layer(x, layout, visible=visible)
        return layout.restore(x)
