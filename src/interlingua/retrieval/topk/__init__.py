r"""The exact k nearest vectors by inner product: ``exact_topk``, or ``mutual_topk`` both ways.

**What is computed.** The similarity of two vectors of width d is

.. math:: s(x, y) = \mathrm{float32}\Big(\sum_{c=1}^{d} x_c\, y_c\Big)

with products and sums in float64. A product of two float32 numbers is exact in float64, so only the
sums round.

**Order of sums.** Sums of floating-point numbers depend on their order. It is always the same here:
coordinate c is added to lane c mod 16, each lane from the first coordinate to the last, and the 16
lanes are then added in halves (lane l and lane l + 8, then l + 4, l + 2, l + 1). The kernel in C
and ``bounds.dot_float64`` in numpy do exactly this, so both give the same bits.

**Ties.** The neighbors of x are the k largest pairs (s(x, y_j), -j): equal similarities go to the
lower index. This is a total order, so the result is unique. It depends neither on the sizes of the
blocks, nor on their order, nor on the number of threads or machines: ``NeighborLists`` can be
joined in any order, and a pair that comes twice counts once.

**Bounds.** Computing all similarities in float64 would be slow. A cheap product bounds each of them
from above. A pair is computed exactly only if its bound reaches the k-th best similarity known so
far of its row or of its column. With mu and nu near the means of x and of y,

.. math:: x_i \cdot y_j = (x_i - \mu) \cdot (y_j - \nu) + x_i \cdot \nu + \mu \cdot (y_j - \nu)

The last two terms belong to one vector each and are computed once. If cosines are close together,
as those of sentence encoders are, the vectors less their means are short, so that errors relative
to their lengths are small.

An orthogonal matrix Q leaves inner products as they are. With :math:`u_i = Q^\top (x_i - \mu)`,
:math:`v_j = Q^\top (y_j - \nu)` and Cauchy's inequality for all but the first p coordinates,

.. math:: (x_i - \mu) \cdot (y_j - \nu) \le \sum_{c \le p} u_{ic} v_{jc} + |u_{i, >p}|\, |v_{j, >p}|

Q holds the axes of largest variance first, so a few coordinates decide for nearly all pairs that
they are not among the best. A *stage* is one such p, a multiple of 64. A scanner takes the smallest
p with which few pairs are computed in vain; if a list is not full yet, it takes all coordinates.

**Rounding.** The sum over the first p coordinates is made of rounded numbers: bytes in the kernel,
bfloat16 or float32 in torch. With :math:`\hat u` and :math:`\hat v` for these, the error of the
product is at most

.. math:: |u_i - \hat u_i| \max_j |v_j| + |\hat u_i| \max_j |v_j - \hat v_j|

There is also the error of sums in float32: at most (d + 40) steps of :math:`2^{-23}`, relative to
the lengths of the vectors and to the terms that are added; 40 counts the roundings outside of the
sum. Both errors are added to the bound (``bounds.BlockPrecision.slack``). So no pair is lost,
whatever mu, nu, Q and the way of rounding are: they decide how fast the search is, and never what
it finds.

Modules: ``exact`` (the search in memory, block by block), ``tiles`` (on disk, resumed, by many
processes), ``bounds`` (the mathematics above), ``torch_scanner`` and ``kernel_scanner`` (two ways
of going through a block's pairs), ``lists`` (the k best so far), ``approximate`` (FAISS and codes,
only on request), ``dense`` (whole tiles of similarities).
"""

from interlingua.retrieval.topk.exact import Neighbors, exact_topk, mutual_topk

__all__ = ["Neighbors", "exact_topk", "mutual_topk"]
