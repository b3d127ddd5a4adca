"""Averages of the weights of models that were trained from one start.

The average is one model of the same size and speed.

The mean of models that were fine-tuned from one start is often better than each of them (model
soups, Wortsman et al. 2022), and a point between start and fine-tuned model keeps most of what was
learned at half of what was forgotten (WiSE-FT, Wortsman et al. 2022). For weights theta_i and
shares w_i that sum to 1:

    theta = sum_i w_i theta_i

Development data decide which shares are best. A grid of mixtures is measured: all models but the
first divide share s equally, and the first model gets 1 - s. Share 1 means only the trained models.
Mixtures whose P@1 is more than a fixed amount below that of share 1 are excluded; of the others,
the one with the best correlation is chosen. Without similarity data it is the one with the best
P@1, and without translations the one with the best correlation. If mixtures are equally good, the
one with the larger share is chosen.
"""

from __future__ import annotations

import dataclasses
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from interlingua import __version__
from interlingua.adapt.development import Development, DevelopmentScores, read_development
from interlingua.adapt.weight_files import (
    HEADER_DTYPES,
    StoredTensor,
    WeightFiles,
    files_besides_weights,
)
from interlingua.encoder.directories.model_directory import (
    MODEL_ENTRIES,
    RANGES_FILE,
    EncodingSettings,
    is_ours,
    read_backbone_config,
    read_json,
    write_model_json,
)
from interlingua.encoder.directories.post_pooling_files import check_cut, read_post_pooling
from interlingua.encoder.directories.static_directory import (
    read_any_settings,
    static_folder,
)
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.language_shift import SHIFT_FILE
from interlingua.encoder.modeling.families import INVISIBLE_KEYS
from interlingua.errors import CheckpointError, ConfigError
from interlingua.exporters.sentence_transformers import find_model
from interlingua.storage.files import PathLike, atomic_directory, sha256_file
from interlingua.storage.formats import AVERAGE
from interlingua.storage.locate import locate
from interlingua.storage.record import write_record
from interlingua.storage.tensor_files import write_safetensors
from interlingua.vocabulary.vocabulary import Vocabulary

_RECORD = "average.json"
DEFAULT_GRID = tuple(step / 10 for step in range(11))
SHOWN_DIFFERENCES = 3
"""Tensors that a message names, at most."""
FLOATS = ("F64", "F32", "F16", "BF16")
"""Dtypes that have a mean."""


class GridPoint(NamedTuple):
    """One mixture and its scores."""

    share: float
    """Share of all models but the first, together."""
    scores: DevelopmentScores


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AverageResult:
    """The written model, its weights and the reason for them."""

    model: Path
    """The new model directory."""
    weights: tuple[float, ...]
    """Share of each model; they sum to 1."""
    grid: tuple[GridPoint, ...] = ()
    """The mixtures that were measured, by rising share; none if weights were set."""
    rule: str | None = None
    """Rule by which the grid's point was chosen."""


OnPoint = Callable[[GridPoint], None]


def average_models(
    models: Sequence[PathLike],
    output: PathLike,
    *,
    weights: Sequence[float] | None,
    grid: Sequence[float] | None,
    pairs: Sequence[PathLike],
    sts: Sequence[PathLike],
    languages: Sequence[str] | None,
    max_pairs: int | None,
    max_loss: float,
    prompt: str | None,
    overwrite: bool,
    on_point: OnPoint,
) -> AverageResult:
    """Average models as ``verbs.average.AverageOptions`` describes.

    All pairs are read if ``max_pairs`` is None.
    """
    folders = [Path(locate(find_model(model)[0])) for model in models]
    fixed = _checked_weights(weights, len(folders))
    shares = _checked_grid(grid, fixed is not None, bool(pairs or sts))
    check_shapes(folders)
    target = Path(output)
    points: list[GridPoint] = []
    rule = None
    # Open the output before any measurement, so that a folder without write access fails at once.
    with atomic_directory(
        target, overwrite=overwrite, ours=is_ours, entries=MODEL_ENTRIES
    ) as folder:
        if fixed is None and (pairs or sts):
            development = read_development(pairs, sts, languages=languages, max_pairs=max_pairs)
            points = measure_grid(
                folders, shares, development, folder / "mixture", prompt=prompt, on_point=on_point
            )
            chosen, rule = choose_point(points, max_loss=max_loss)
            fixed = mixture(chosen.share, len(folders))
        # Without weights and without data all models have the same share.
        weights = fixed or mixture(1 - 1 / len(folders), len(folders))
        result = AverageResult(model=target, weights=weights, grid=tuple(points), rule=rule)
        write_average(folders, weights, folder)
        write_record(
            folder / _RECORD, AVERAGE, record(result, folders, [str(model) for model in models])
        )
    return result


def measure_grid(
    folders: Sequence[Path],
    shares: Sequence[float],
    development: Development,
    place: Path,
    *,
    prompt: str | None = None,
    on_point: OnPoint = lambda point: None,
) -> list[GridPoint]:
    """Write and measure each mixture in turn, so that the measured model is the stored one.

    Args:
        folders: models that ``check_shapes`` has passed.
        shares: the shares to measure; each is that of all models but the first together.
        development: data to measure on.
        place: a folder for one mixture at a time, which is removed at the end.
        prompt: name of a prompt of the model, or a text put in front of every development text.
        on_point: called with each point as it is measured.
    """
    points: list[GridPoint] = []
    for share in shares:
        write_average(folders, mixture(share, len(folders)), place)
        points.append(GridPoint(share, development.measure(Encoder.load(place), prompt=prompt)))
        on_point(points[-1])
        shutil.rmtree(place)
    return points


def mixture(share: float, count: int) -> tuple[float, ...]:
    """Return the shares of ``count`` models: all but the first divide ``share`` equally."""
    return (1 - share, *[share / (count - 1)] * (count - 1))


def choose_point(points: Sequence[GridPoint], *, max_loss: float) -> tuple[GridPoint, str]:
    """Return the best point of a grid, and the rule in words; see the module."""

    def by_retrieval(point: GridPoint) -> tuple[float, float]:
        return point.scores.mean_retrieval or 0.0, point.share

    def by_similarity(point: GridPoint) -> tuple[float, float]:
        return point.scores.mean_similarity or 0.0, point.share

    last = max(points, key=lambda point: point.share)
    # All points are measured on the same data: if one point lacks a result, all points lack it.
    if last.scores.mean_similarity is None:
        return max(points, key=by_retrieval), "the best P@1"
    if last.scores.mean_retrieval is None:
        return max(points, key=by_similarity), "the best similarity"
    least = last.scores.mean_retrieval - max_loss
    # Rounding must not exclude a point that loses exactly the allowed amount.
    allowed = [point for point in points if (point.scores.mean_retrieval or 0.0) >= least - 1e-9]
    rule = (
        f"the best similarity among those that lose at most {max_loss:g} P@1 of share"
        f" {last.share:g}"
    )
    return max(allowed, key=by_similarity), rule


def check_shapes(folders: Sequence[Path]) -> None:
    """Check that models can be averaged.

    Raises:
        ConfigError: they differ in tensors, vocabulary or the processing of the token states; the
            message names the differences.
        CheckpointError: one can't be read.
    """
    for folder in folders:
        if (folder / SHIFT_FILE).exists():
            raise ConfigError(
                f"{folder}: the vectors are shifted by language, and shifts cannot be averaged;"
                " average the models without shifts, then run `interlingua debias` on the result"
            )
    tensors_of = {folder: WeightFiles(folder).tensors for folder in folders}
    for folder, tensors in tensors_of.items():
        _check_tensors(folder, tensors)
    first = folders[0]
    own = tensors_of[first]
    # Compare each model with the first one: models that match it also match each other.
    for other in folders[1:]:
        differing = _differences(own, tensors_of[other])
        if differing:
            more = ""
            if len(differing) > SHOWN_DIFFERENCES:
                more = f" and {len(differing) - SHOWN_DIFFERENCES} more"
            raise ConfigError(
                f"{first} and {other} have different shapes:"
                f" {'; '.join(differing[:SHOWN_DIFFERENCES])}{more}; average models that were"
                " trained from the same start"
            )
        if Vocabulary.of_model(first).digest() != Vocabulary.of_model(other).digest():
            raise ConfigError(
                f"{first} and {other} have different vocabularies, so their token vectors do not"
                " correspond; average models that were trained from the same start"
            )
        _check_settings(first, other)


def _check_tensors(folder: Path, tensors: dict[str, StoredTensor]) -> None:
    """Refuse tensors without a mean.

    Raises:
        ConfigError: numbers are not floating-point, or vectors are the product of two tensors.
    """
    for name, tensor in tensors.items():
        if tensor.dtype not in FLOATS:
            raise ConfigError(
                f"{folder}: {name} contains {tensor.dtype} numbers, which cannot be averaged; use"
                " a model with floating-point weights"
            )
    names = _table_tensors(tensors)
    if static_folder(folder) and len(names) > 1:
        raise ConfigError(
            f"{folder}: the vectors of tokens consist of several tensors ({', '.join(names)}),"
            f" which cannot be averaged; join them: interlingua export {folder} -o DIR"
        )


def _table_tensors(tensors: dict[str, StoredTensor]) -> list[str]:
    """Return the names of the tensors of a table, without those of modules after it."""
    return [name for name in tensors if "/" not in name]


def _check_settings(first: Path, other: Path) -> None:
    """Refuse two models that process the token states differently.

    Raises:
        ConfigError: the models do so; the message names the first difference.
    """
    for name, (a, b) in _settings(first, other).items():
        if a != b:
            raise ConfigError(
                f"{first} and {other} differ in {name} ({a}, {b}); average models of the same kind"
            )


def write_average(folders: Sequence[Path], weights: Sequence[float], output: Path) -> None:
    """Write a model directory with mean weights; everything else is as in the first model.

    Only the ranges of int8 vectors are left out: they describe the first model's vectors, and must
    be measured again. Sums are computed in float64 and stored in the first model's dtype. A tensor
    of share 1 keeps its bits.

    Args:
        folders: models that ``check_shapes`` has passed.
        weights: share of each.
        output: a folder, created if it does not exist; files in it are replaced.
    """
    first = folders[0]
    output.mkdir(parents=True, exist_ok=True)
    for path in files_besides_weights(first):
        if path.name == RANGES_FILE:
            continue
        (output / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(first / path, output / path)
    # The mean was written by this version, whoever wrote the first model.
    settings = read_json(output / "config_sentence_transformers.json", missing={})
    settings["__version__"] = {**(settings.get("__version__") or {}), "interlingua": __version__}
    write_model_json(output / "config_sentence_transformers.json", settings)
    opened = [WeightFiles(folder) for folder in folders]
    # Write folder by folder: each folder is a module with its own file.
    by_place: dict[str, dict[str, StoredTensor]] = {}
    for name, tensor in opened[0].tensors.items():
        by_place.setdefault(name.rpartition("/")[0], {})[name] = tensor
    for place, tensors in sorted(by_place.items()):
        _write_place(opened, weights, tensors, output / place)


def _write_place(
    opened: Sequence[WeightFiles],
    weights: Sequence[float],
    named: dict[str, StoredTensor],
    folder: Path,
) -> None:
    """Write one folder's tensors; their names in the file are without the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    # A sharded model becomes one file; all others keep their names.
    names = {tensor.file.name for tensor in named.values()}
    target = folder / (names.pop() if len(names) == 1 else "model.safetensors")
    means = {}
    for name, tensor in named.items():
        means[name.rpartition("/")[2]] = _mean(opened, weights, name, HEADER_DTYPES[tensor.dtype])
    write_safetensors(target, means, {"format": "pt"})
    # The next folder has other files, so these need not stay open.
    for files in opened:
        files.close()


def _mean(
    opened: Sequence[WeightFiles], weights: Sequence[float], name: str, dtype: torch.dtype
) -> Tensor:
    """Compute the mean of one tensor, theta = sum_i w_i theta_i."""
    # A model of share 0 is not read at all.
    used = [(files, weight) for files, weight in zip(opened, weights, strict=True) if weight]
    # A single model has share 1, and keeps its bits.
    if len(used) == 1:
        files = used[0][0]
        return _check_finite(files.tensor(name), files, name).to(dtype)
    total = torch.zeros(opened[0].tensors[name].shape, dtype=torch.float64)
    for files, weight in used:
        # In place, so that two copies in float64 are in memory and not three.
        total += files.tensor(name).to(torch.float64, copy=True).mul_(weight)
    mean = total.to(dtype)
    # Check the mean first, and search for the faulty model only if this fails. A mean of finite
    # models may also exceed the range of a small dtype.
    if not torch.isfinite(mean).all():
        for files, _ in used:
            _check_finite(files.tensor(name), files, name)
    return mean


def _check_finite(tensor: Tensor, files: WeightFiles, name: str) -> Tensor:
    """Return the tensor unchanged if it is finite.

    Raises:
        CheckpointError: it holds NaN or infinity.
    """
    if not torch.isfinite(tensor).all():
        raise CheckpointError(
            f"{files.folder}: {name} contains NaN or infinity; average other models"
        )
    return tensor


def _differences(own: dict[str, StoredTensor], other: dict[str, StoredTensor]) -> list[str]:
    """Return the tensors with different shapes in two models, each with both shapes."""
    found: list[str] = []
    for name in sorted(own.keys() | other.keys()):
        first, second = (
            tensors[name].shape if name in tensors else "missing" for tensors in (own, other)
        )
        if first != second:
            found.append(f"{name} ({first} and {second})")
    return found


def _settings(*folders: Path) -> dict[str, list[Any]]:
    """Return the settings that two models must have in common besides tensors, by name."""
    # The maximum length of a text does not matter here, so the value is higher than any limit.
    read = [read_any_settings(folder, max_tokens=1 << 30) for folder in folders]
    configs = [read_json(folder / "config.json", missing={}) for folder in folders]
    common: dict[str, list[Any]] = {
        "pooling": [settings.pooling for settings in read],
        "include_special": [settings.include_special for settings in read],
        "normalize": [settings.normalize for settings in read],
        "layers after pooling": [
            _after_pooling(folder, settings) for folder, settings in zip(folders, read, strict=True)
        ],
    }
    for key in INVISIBLE_KEYS:
        common[key] = [config.get(key) for config in configs]
    return common


def _after_pooling(folder: Path, settings: EncodingSettings) -> tuple[str, ...]:
    """Return the layers after pooling, in words."""
    if static_folder(folder):
        # A table has a single tensor, see ``_check_tensors``, with a row for each token.
        tensors = WeightFiles(folder).tensors
        width = tensors[_table_tensors(tensors)[0]].shape[1]
    else:
        width = read_backbone_config(folder, read_json(folder / "config.json")).hidden_size
    layers = read_post_pooling(folder, width)
    check_cut(settings.truncate_dim, layers.output_dim(width), folder)
    return layers.described


def _checked_weights(weights: Sequence[float] | None, count: int) -> tuple[float, ...] | None:
    """Return the user's weights as shares that sum to 1; None if there are none.

    Raises:
        ConfigError: they can't be shares of ``count`` models.
    """
    if count < 2:
        raise ConfigError(
            f"an average requires at least two models, found {count}; name the start and the"
            " trained models"
        )
    if weights is None:
        return None
    total = sum(weights)
    if len(weights) != count:
        raise ConfigError(
            f"weights: expected one number for each of {count} models, found {len(weights)}"
        )
    if not all(map(math.isfinite, weights)) or min(weights) < 0 or total <= 0:
        raise ConfigError(
            "weights: expected numbers of at least 0, one of them above 0, found"
            f" {', '.join(map('{:g}'.format, weights))}"
        )
    return tuple(weight / total for weight in weights)


def _checked_grid(grid: Sequence[float] | None, has_weights: bool, has_data: bool) -> list[float]:
    """Return the shares to measure, ascending and without repetition.

    Raises:
        ConfigError: they are not shares, or are incompatible with the other options.
    """
    if has_weights and (grid is not None or has_data):
        raise ConfigError(
            "weights cannot be combined with grid, pairs or sts, which choose the weights;"
            " remove weights, or remove the others"
        )
    if grid is not None and not has_data:
        raise ConfigError(
            "grid requires development data; pass pairs (translations), sts (scored pairs) or both"
        )
    if grid is None:
        grid = DEFAULT_GRID
    shares = sorted(set(grid))
    if not shares or shares[0] < 0 or shares[-1] > 1:
        listed = ", ".join(map("{:g}".format, shares)) or "none"
        raise ConfigError(f"grid: expected shares from 0 to 1, found {listed}")
    return shares


def record(result: AverageResult, folders: Sequence[Path], names: Sequence[str]) -> dict[str, Any]:
    """Return the content of ``average.json``.

    It holds the models with their digests and shares, and the grid.
    """
    # The digests identify the averaged weights, even if the folders change.
    parts = []
    for name, folder, weight in zip(names, folders, result.weights, strict=True):
        files = sorted(folder.rglob("*.safetensors"))
        digests = {str(file.relative_to(folder)): sha256_file(file) for file in files}
        parts.append({"model": name, "weight": weight, "sha256": digests})
    points = [{"share": point.share, **dataclasses.asdict(point.scores)} for point in result.grid]
    return {
        "version": __version__,
        "models": parts,
        "rule": result.rule,
        "grid": points,
    }
