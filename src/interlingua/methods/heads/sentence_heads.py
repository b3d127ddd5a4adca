"""Heads on sentence embeddings, used only in training; none is exported."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from interlingua.config.registry import did_you_mean
from interlingua.errors import DataError
from interlingua.runtime.devices import on_device

# Added to the variance, as in BERT.
LAYER_NORM_EPSILON = 1e-12


class ProjectionHead(nn.Sequential):
    """Two linear layers with a ReLU between: D -> D -> ``output_dim``.

    Args:
        dim: width D of the embeddings.
        output_dim: width of the projection.
    """

    def __init__(self, dim: int, output_dim: int) -> None:
        super().__init__(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, output_dim))


class LanguageTags(nn.Module):
    """One learned vector per language, normalized by default, then dropout.

    Args:
        languages: codes that get a tag, such as ``deu_Latn``.
        dim: width of a tag.
        dropout: probability of zeroing an element.
        normalize: whether tags pass through a LayerNorm.
    """

    def __init__(
        self, languages: Sequence[str], dim: int, *, dropout: float, normalize: bool = True
    ) -> None:
        super().__init__()
        self.index = {code: position for position, code in enumerate(languages)}
        self.embedding = nn.Embedding(len(self.index), dim)
        self.norm: nn.Module = nn.Identity()
        if normalize:
            self.norm = nn.LayerNorm(dim, LAYER_NORM_EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Int64[Tensor, " b"]) -> Float[Tensor, "b l"]:
        """Return the tags of languages.

        Args:
            rows: row of each language in the table, see the method ``rows``.
        """
        found = self.embedding(on_device(rows, self.embedding.weight.device))
        tags: Tensor = self.dropout(self.norm(found))
        return tags

    def rows(self, languages: Sequence[str]) -> Int64[Tensor, " b"]:
        """Return the row of each language in the table, on the host.

        Args:
            languages: codes.

        Raises:
            DataError: a language has no tag.
        """
        try:
            return torch.tensor([self.index[code] for code in languages])
        except KeyError as error:
            code = str(error.args[0])
            raise DataError(
                f"the language {code} has no tag{did_you_mean(code, self.index)}; add the"
                " language to the method's languages, or prepare a vocabulary with its tag"
            ) from error


class TokenPredictionHead(nn.Module):
    """Map from a sentence embedding and a target language to logits over the vocabulary.

    Args:
        dim: width D of the embeddings.
        vocab_size: V.
        tags: the target languages' tags, of width L; None = the head doesn't know the language.
        shared: whether the output embeddings belong to another module and are passed in each call;
            False: they are V vectors of the head, of width L + D.
    """

    def __init__(
        self, dim: int, vocab_size: int, *, tags: LanguageTags | None, shared: bool = False
    ) -> None:
        super().__init__()
        width = dim
        if tags is not None:
            width += tags.embedding.embedding_dim
        # Output embeddings of another module have only the width of the sentence embedding.
        output_width = dim if shared else width
        self.tags = tags
        self.dense = nn.Linear(width, output_width)
        self.norm = nn.LayerNorm(output_width, LAYER_NORM_EPSILON)
        self.output: nn.Linear | None = None
        if not shared:
            self.output = nn.Linear(output_width, vocab_size, bias=False)

    def forward(
        self, embeddings: Float[Tensor, "b d"], tag_rows: Int64[Tensor, " b"] | None
    ) -> Float[Tensor, "b h"]:
        """Compute the vector to multiply the output embeddings by; the products are the logits.

        Args:
            embeddings: of sentences.
            tag_rows: of the target languages, see ``LanguageTags.rows``; None = the head has no
                tags.
        """
        joint = embeddings
        if self.tags is not None:
            assert tag_rows is not None
            joint = torch.cat([self.tags(tag_rows), embeddings], dim=1)
        features: Tensor = self.norm(F.silu(self.dense(joint)))
        return features

    def output_embeddings(self, shared: Float[Tensor, "v d"]) -> Float[Tensor, "v h"]:
        """Return the head's own output embeddings, or ``shared`` if it has none."""
        if self.output is None:
            return shared
        return self.output.weight
