"""Vectors cut to their first elements, and vectors in bytes and bits.

float32 takes 4 bytes an element. int8 takes one: the range of each dimension, measured once on many
vectors, is divided into 255 equal steps, and an element is the number of steps above the range's
lower end, minus 128. Bits keep only the sign, eight dimensions in a byte. Rounding and bit order
are those of ``quantize_embeddings`` in sentence-transformers 6.2: from the same vectors and ranges
both make the same bytes, so an index may be filled by either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from jaxtyping import Float32, Num
from numpy import ndarray

from interlingua.config.registry import check_choice
from interlingua.encoder.finite_vectors import check_finite
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.portions import ceil_div
from interlingua.storage.arrays import normalize_rows

VectorPrecision = Literal["float32", "int8", "binary", "ubinary"]
"""binary is ubinary minus 128, as signed bytes; both hold one bit per dimension."""
_STEPS = 255
OFFSET = 128
"""Difference of unsigned and signed bytes."""


class Int8Ranges(NamedTuple):
    """Smallest and largest value of each dimension."""

    minimum: tuple[float, ...]
    maximum: tuple[float, ...]

    @classmethod
    def of(cls, vectors: Float32[ndarray, "n d"]) -> Int8Ranges:
        """Compute the ranges of some vectors.

        Raises:
            DataError: there are no vectors.
        """
        if not len(vectors):
            raise DataError("no vectors to measure ranges on; pass texts")
        return cls(tuple(vectors.min(axis=0).tolist()), tuple(vectors.max(axis=0).tolist()))

    def joined(self, other: Int8Ranges) -> Int8Ranges:
        """Return the ranges of the union of both sets of vectors."""
        lower = tuple(map(min, self.minimum, other.minimum))
        upper = tuple(map(max, self.maximum, other.maximum))
        return Int8Ranges(lower, upper)

    @property
    def starts(self) -> Float32[ndarray, " d"]:
        """Lower ends of the ranges."""
        return np.array(self.minimum, dtype=np.float32)

    @property
    def steps(self) -> Float32[ndarray, " d"]:
        """Width of a step of each dimension; 1 for a dimension with the same value everywhere."""
        steps = (np.array(self.maximum, dtype=np.float32) - self.starts) / np.float32(_STEPS)
        return np.where(steps == 0, np.float32(1), steps)


def ranges_by_width(stored: Mapping[str, Any]) -> dict[int, Int8Ranges]:
    """Parse the content of ``int8_ranges.json``, which must have passed the schema of that file.

    Raises:
        ValueError: the number of ranges differs from their key, or a range ends below its start.
    """
    found: dict[int, Int8Ranges] = {}
    for name, ends in stored.items():
        ranges = Int8Ranges(tuple(map(float, ends["minimum"])), tuple(map(float, ends["maximum"])))
        widths = {str(len(ranges.minimum)), str(len(ranges.maximum))}
        if widths != {name}:
            raise ValueError(
                f"the ranges for {name[:20]!r} have {' and '.join(sorted(widths))} dimensions"
            )
        if any(low > high for low, high in zip(*ranges, strict=True)):
            raise ValueError(f"a range for {name} dimensions ends below its start")
        found[len(ranges.minimum)] = ranges
    return found


def quantize_vectors(
    vectors: Float32[ndarray, "n d"], precision: VectorPrecision, ranges: Int8Ranges | None = None
) -> Num[ndarray, "n c"]:
    """Convert vectors to another precision; binary ones have one column per eight dimensions.

    Args:
        vectors: in float32.
        precision: float32, int8, binary (signed bytes) or ubinary (unsigned ones).
        ranges: for int8.

    Raises:
        ConfigError: the precision is unknown, or int8 has no ranges.
    """
    check_choice("precision", precision, get_args(VectorPrecision))
    if precision == "float32":
        return vectors
    if precision == "int8":
        if ranges is None:
            raise ConfigError(
                "int8 vectors require ranges; measure them with Int8Ranges.of(vectors)"
            )
        codes = np.clip(np.floor((vectors - ranges.starts) / ranges.steps), 0, _STEPS)
        return np.asarray((codes - OFFSET).astype(np.int8))
    bits = np.packbits(vectors > 0, axis=-1)
    if precision == "ubinary":
        return bits
    return np.asarray((bits - OFFSET).astype(np.int8))


def dequantize_vectors(
    codes: Num[ndarray, "n c"], width: int, ranges: Int8Ranges | None = None
) -> Float32[ndarray, "n d"]:
    """Convert codes back to vectors: lower ends of int8's steps, and 1 or -1 for bits.

    Args:
        codes: output of ``quantize_vectors``, of any precision but float32.
        width: d, elements of a vector; int8 codes have d columns, bit codes an eighth of that.
        ranges: for int8.

    Raises:
        DataError: the codes are not vectors of this width.
        ConfigError: int8 has no ranges.
    """
    if codes.dtype == np.int8 and codes.shape[1] == width:
        if ranges is None:
            raise ConfigError(
                "int8 vectors require the ranges that encoded them; pass the same Int8Ranges"
            )
        return np.asarray((codes.astype(np.float32) + OFFSET) * ranges.steps + ranges.starts)
    # Eight dimensions in a byte, rounded up.
    packed_width = ceil_div(width, 8)
    if codes.dtype not in (np.int8, np.uint8) or codes.shape[1] != packed_width:
        raise DataError(
            f"expected int8 or bit codes of vectors of width {width}, found {codes.dtype} of"
            f" shape {codes.shape}"
        )
    packed = codes
    # Computed in 16 bits, since the summand does not fit into a signed byte.
    if codes.dtype == np.int8:
        packed = (codes.astype(np.int16) + OFFSET).astype(np.uint8)
    bits = np.unpackbits(packed, axis=1, count=width)
    return np.asarray(bits.astype(np.float32) * 2 - 1)


class _HasVectorSettings(Protocol):
    """The settings of ``EncodingSettings`` that concern vectors."""

    @property
    def truncate_dim(self) -> int | None: ...
    @property
    def int8_ranges(self) -> dict[int, Int8Ranges]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class VectorFormat:
    """Format of the vectors that a model's pooling produces.

    Attributes:
        width: number of elements that are kept, counted from the first one.
        cuts: whether these are only a part of all elements.
        normalize: whether cut vectors are scaled to length 1.
        precision: type of the stored elements.
        ranges: for int8.
    """

    width: int
    cuts: bool
    normalize: bool
    precision: VectorPrecision
    ranges: Int8Ranges | None

    @classmethod
    def of(
        cls,
        settings: _HasVectorSettings,
        width: int,
        *,
        dim: int | None,
        normalize: bool,
        precision: VectorPrecision,
    ) -> VectorFormat:
        """Return the requested format, if the model supports it.

        Args:
            settings: of the model.
            width: of its pooled vectors.
            dim: elements to keep; None = as in the settings.
            normalize: scale the vectors to length 1.
            precision: see ``quantize_vectors``.

        Raises:
            ConfigError: the vectors have fewer elements than ``dim``, or int8 is requested without
                ranges for this width.
        """
        longest = settings.truncate_dim or width
        if dim is not None:
            check_width(dim, longest)
        # Ranges apply to a single width: elements of shorter vectors are scaled differently.
        kept = dim or longest
        ranges = settings.int8_ranges.get(kept)
        if precision == "int8" and not normalize:
            raise ConfigError(
                "precision int8 requires vectors of length 1, because its ranges are measured on"
                " them; keep normalize_embeddings=True"
            )
        if precision == "int8" and ranges is None:
            raise ConfigError(
                f"the model has no int8 ranges for vectors of {kept} elements; measure them on"
                " typical texts: interlingua export MODEL -o DIR --ranges-of TEXTS, or"
                " encoder.calibrate_ranges(texts)"
            )
        return cls(
            width=kept, cuts=kept < width, normalize=normalize, precision=precision, ranges=ranges
        )

    def __call__(self, vectors: Float32[ndarray, "n d"]) -> Any:
        """Convert the vectors to this format.

        Raises:
            DataError: a vector is not finite; its code would look like any other.
        """
        if self.precision != "float32":
            check_finite(vectors, lambda row: f"text {row + 1} of a block")
        return quantize_vectors(self.cut(vectors), self.precision, self.ranges)

    def cut(self, vectors: Float32[ndarray, "n d"]) -> Float32[ndarray, "n w"]:
        """Return the first elements, scaled to length 1 if requested."""
        if not self.cuts:
            return vectors
        return first_elements(vectors, self.width, normalize=self.normalize)


def check_width(truncate_dim: int, longest: int) -> None:
    """Check a number of elements to keep of each vector.

    Args:
        truncate_dim: the number.
        longest: number of elements of the model's vectors.

    Raises:
        ConfigError: the number is not from 1 to ``longest``.
    """
    if not 1 <= truncate_dim <= longest:
        raise ConfigError(
            f"truncate_dim: expected a number from 1 to {longest}, found {truncate_dim}; the"
            f" vectors of the model have {longest} elements"
        )


def first_elements(
    vectors: Float32[ndarray, "n d"], dim: int, *, normalize: bool
) -> Float32[ndarray, "n w"]:
    """Return the first ``dim`` elements of each vector.

    Args:
        vectors: of width ``dim`` or more.
        dim: elements to keep.
        normalize: scale the cut vectors to length 1.
    """
    # A copy, so that the whole vectors need not be kept.
    kept = np.array(vectors[:, :dim])
    if normalize:
        return normalize_rows(kept)
    return kept
