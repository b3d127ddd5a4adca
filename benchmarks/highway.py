"""The encoding kernel's product, written by hand and with Google Highway, next to each other.

    python benchmarks/highway.py --headers FOLDER
    python benchmarks/highway.py --variants avx2 --rounds 40

``highway.cc`` is the product of ``kernels/products.h``: the same panels of weights, blocks of rows
and order of sums, by Highway's functions in place of ``avx512.h`` and ``avx2.h``. It needs gcc and
g++, and Highway's headers, 1.1 or later: ``--headers`` is the folder that holds ``hwy``, such as
``numpy/_core/src/highway`` of NumPy's source distribution; without it the system's are taken.

Highway's is compiled twice: as it is, and "settled", with the line of assembly by which the kernel
keeps GCC from spilling the sums of bytes. All are compiled for the same processor and take turns in
this process, on one thread. The best of the rounds counts, in processor time, for 12 rows (about
one query) and for 96 (a block of the encoder). Products of bytes have to be equal in all bits,
those of float32 to 1e-5. The ratios come last: above 1, Highway's takes longer.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
MACHINES = {"avx512vnni": ["-march=icelake-server"], "avx2": ["-march=haswell", "-maes"]}
"""By variant of the kernel, what gives Highway the same instructions: its AVX3_DL and AVX2."""
TYPES = {"float32": 0, "int8": 2}
"""Codes of types, as in the kernel."""
SHAPES = ((12, 384, 384), (12, 384, 1536), (96, 384, 384), (96, 384, 1536))
"""Rows, inputs, outputs."""
SECONDS = 0.004
"""Approximate duration of a round."""
TOLERANCE = 1e-5
LARGEST_BYTE = 63
"""Two of them are at most 128, as AVX2's products of bytes need it."""


class Data(NamedTuple):
    """Operands of a product, aligned; the weights in panels."""

    weights: np.ndarray
    bias: np.ndarray
    scales: np.ndarray
    x: np.ndarray
    x_scales: np.ndarray
    starts: np.ndarray
    y: np.ndarray


def build(command: list[str], source: Path, library: Path) -> ctypes.CDLL:
    """Compile a source file and load the library."""
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.columns_of_a_panel.restype = ctypes.c_int64
    return loaded


def build_all(variant: str, folder: Path, headers: Path | None) -> dict[str, ctypes.CDLL]:
    """Build the libraries of a variant, the hand-written one first."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hatch_build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hatch_build)
    kernels = f"-I{ROOT / 'src' / 'interlingua' / 'kernels'}"
    by_hand = ["gcc", *hatch_build.FLAGS, *hatch_build.VARIANTS["x86_64"][variant], kernels]
    included = [f"-I{headers}"] if headers else []
    # The processor is named to the compiler for its instructions, not for how it orders them.
    flags = ["-std=c++17", *MACHINES[variant], "-mtune=generic", *included]
    by_highway = ["g++", *hatch_build.FLAGS, *flags]
    source = FOLDER / "highway.cc"
    settled = [*by_highway, "-DSETTLE"]
    return {
        "by hand": build(by_hand, FOLDER / "highway_kernel.c", folder / f"hand.{variant}.so"),
        "Highway": build(by_highway, source, folder / f"highway.{variant}.so"),
        "settled": build(settled, source, folder / f"settled.{variant}.so"),
    }


def aligned(values: np.ndarray) -> np.ndarray:
    """Copy values to a multiple of 64 bytes, with space behind them for prefetching."""
    memory = np.zeros(values.nbytes + 128, np.uint8)
    begin = -memory.ctypes.data % 64
    copy = memory[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def operands(dtype: str, rows: int, inputs: int, outputs: int, panel: int) -> Data:
    """Draw random operands."""
    rng = np.random.default_rng(0)
    bias = rng.standard_normal(outputs, dtype=np.float32)
    scales = rng.uniform(1e-4, 2e-4, outputs).astype(np.float32)
    x_scales = rng.uniform(1e-2, 2e-2, rows).astype(np.float32)
    if dtype == "float32":
        x = rng.standard_normal((rows, inputs), dtype=np.float32)
        weights = rng.standard_normal((outputs, inputs), dtype=np.float32) / np.float32(inputs)
        together = 1
    else:
        x = rng.integers(-LARGEST_BYTE, LARGEST_BYTE + 1, (rows, inputs)).astype(np.int8)
        weights = rng.integers(1, 256, (outputs, inputs)).astype(np.uint8)
        together = 4
    # To the stored bytes 128 was added, which a row's sum starts with the loss of.
    starts = (-128 * x.astype(np.int32).sum(axis=1)).astype(np.int32)
    panels = weights.reshape(outputs // panel, panel, inputs // together, together)
    y = np.zeros((rows, outputs), np.float32)
    arrays = (panels.transpose(0, 2, 1, 3), bias, scales, x, x_scales, starts, y)
    return Data(*[aligned(array) for array in arrays])


def multiply(library: ctypes.CDLL, dtype: str, data: Data, times: int) -> None:
    """Repeat the product into ``data.y``."""
    rows, outputs = data.y.shape
    numbers = [ctypes.c_int64(count) for count in (data.x.shape[1], outputs)]
    address = {name: ctypes.c_void_p(value.ctypes.data) for name, value in data._asdict().items()}
    library.multiply_rows(
        ctypes.c_int64(times),
        ctypes.c_int64(TYPES[dtype]),
        address["weights"],
        address["bias"],
        address["scales"],
        *numbers,
        address["x"],
        address["x_scales"],
        address["starts"],
        ctypes.c_int64(rows),
        address["y"],
    )


def check(found: dict[str, np.ndarray], dtype: str) -> None:
    """Check that all libraries return equal products.

    Raises:
        SystemExit: they did not.
    """
    by_hand = found["by hand"]
    if not by_hand.any():
        raise SystemExit("the product by hand is empty")
    for name, product in found.items():
        if dtype == "int8" and not np.array_equal(by_hand, product):
            raise SystemExit(f"{name}: products of bytes differ from those by hand")
        apart = float(np.abs(by_hand - product).max())
        if not apart <= TOLERANCE:
            raise SystemExit(f"{name}: products of float32 differ by {apart:.1e}")


def compare(
    libraries: dict[str, ctypes.CDLL], dtype: str, data: Data, rounds: int
) -> dict[str, float]:
    """Check all libraries, and return the nanoseconds of a product by each."""
    found = {}
    for name, library in libraries.items():
        data.y[...] = 0
        multiply(library, dtype, data, 1)
        found[name] = data.y.copy()
    check(found, dtype)
    start = time.thread_time()
    multiply(libraries["by hand"], dtype, data, 100)
    times = max(1, round(100 * SECONDS / (time.thread_time() - start)))
    best = dict.fromkeys(libraries, float("inf"))
    for _ in range(rounds):
        for name, library in libraries.items():
            start = time.thread_time()
            multiply(library, dtype, data, times)
            # Other work of the machine can only add time.
            best[name] = min(best[name], (time.thread_time() - start) / times * 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--headers", type=Path, help="folder of hwy/highway.h")
    parser.add_argument("--variants", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    ratios: dict[tuple[str, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for variant in options.variants:
            libraries = build_all(variant, Path(folder), options.headers)
            if not libraries["by hand"].supported():
                print(f"{variant}: not on this machine")
                continue
            libraries["Highway"].target_name.restype = ctypes.c_char_p
            target = libraries["Highway"].target_name().decode()
            print(f"{variant}, Highway's target {target}, GFLOP/s:")
            [panel] = {library.columns_of_a_panel() for library in libraries.values()}
            for dtype, (rows, inputs, outputs) in itertools.product(TYPES, SHAPES):
                data = operands(dtype, rows, inputs, outputs, panel)
                best = compare(libraries, dtype, data, options.rounds)
                rates = [
                    f"{name} {2 * rows * inputs * outputs / nanoseconds:.0f}"
                    for name, nanoseconds in best.items()
                ]
                print(f"  {dtype:<8}{rows:3} rows, {inputs} x {outputs:<5} {', '.join(rates)}")
                for name in ("Highway", "settled"):
                    ratio = best[name] / best["by hand"]
                    ratios.setdefault((variant, dtype, name), []).append(ratio)
    for (variant, dtype, name), values in ratios.items():
        each = ", ".join([f"{value:.2f}" for value in values])
        mean = statistics.geometric_mean(values)
        print(f"{variant}, {dtype}, {name}: time / by hand {mean:.2f} ({each})")
    if not ratios:
        sys.exit("nothing to compare on this machine")


if __name__ == "__main__":
    main()
