"""``interlingua.export`` and ``interlingua export``: a model as other libraries read it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from interlingua.config.options import MODEL, OUTPUT, Options, argument, function_of, option
from interlingua.errors import ConfigError, require_extra
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_folder, check_inputs
from interlingua.verbs.parts.shared_options import REQUIRED, output_option

if TYPE_CHECKING:
    from interlingua.exporters.verify import Verification


class Exported(NamedTuple):
    """A directory that was written or compared.

    Attributes:
        output: the directory.
        verification: how close its vectors are to the model's; None if that was not checked.
        lines: report of the training of token vectors.
    """

    output: Path
    verification: Verification | None
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class ExportOptions(Options):
    """Options of ``export``."""

    model: PathLike = argument(
        "Model folder, hf:owner/name, or run folder (its best model).", reads="model"
    )
    output: PathLike = output_option("Folder for the exported model.", REQUIRED)
    # Kinds of output; without any of these, a directory for sentence-transformers.
    onnx: bool = option(
        False, "Write an ONNX graph for onnxruntime, with the pooling inside.", group=OUTPUT
    )
    int8: bool = option(
        False, "Write an ONNX graph with int8 weights and int8 matrix products.", group=OUTPUT
    )
    openvino: bool = option(False, "Write a graph for OpenVINO.", group=OUTPUT)
    compact: bool = option(
        False,
        "Write one folder for all libraries and ONNX; it stores the weights once, in eight bits.",
        group=OUTPUT,
    )
    gguf: bool = option(
        False, "Write a GGUF file for llama.cpp; --dtype sets its number type.", group=OUTPUT
    )
    static: bool = option(
        False,
        "Train a static model, one vector per token, on --corpus; prints its speed.",
        group=OUTPUT,
    )
    # How token vectors are trained.
    corpus: PathLike | None = option(
        None,
        "With --static: folder that interlingua prepare wrote.",
        group=MODEL,
        kind=Path,
        reads="folder",
    )
    dim: int | None = option(
        None,
        "With --static: number of elements of a vector; that of MODEL by default.",
        group=MODEL,
        unit="elements",
    )
    settings: Sequence[str] | None = option(
        None,
        "With --static: key of the training config, section.key=value; repeatable.",
        group=MODEL,
        flags=("--set",),
        metavar="KEY=VALUE",
    )
    # Contents of the directory and of its model card.
    dtype: str = option(
        "float32", "Type of the stored weights: float32, bfloat16, float16, or int8.", group=OUTPUT
    )
    name: str | None = option(
        None, "Name of the model in the card; that of the folder by default.", group=OUTPUT
    )
    license: str | None = option(
        None, "License of the model for the card, an SPDX identifier: Apache-2.0.", group=OUTPUT
    )
    results: Sequence[PathLike] | None = option(
        None,
        "Result files or folders; the card shows the results of this model.",
        group=OUTPUT,
        reads="paths",
    )
    # How the model is made smaller before it is written.
    vocabulary_of: Sequence[str] | None = option(
        None,
        "Keep only the vocabulary of these files or patterns: .txt, or bitexts.",
        group=MODEL,
        reads="texts or folders",
    )
    layers: int | None = option(
        None, "Number of layers to keep, from the first.", group=MODEL, unit="layers"
    )
    components_of: Sequence[str] | None = option(
        None,
        "Rotate the vectors to their principal components on the texts of these files or"
        " patterns (.txt or bitexts), so that the first elements hold the most information.",
        group=MODEL,
        reads="texts or folders",
    )
    truncate_dim: int | None = option(
        None,
        "Number of elements of a vector to keep, from the first.",
        group=MODEL,
        unit="elements",
    )
    ranges_of: Sequence[str] | None = option(
        None,
        "Measure the ranges for int8 vectors on these files or patterns: .txt, or bitexts.",
        group=MODEL,
        reads="texts or folders",
    )
    text_forms: str | None = option(
        None,
        "Forms of a text that the model reverts to plain text: all, none, or a list such as"
        " invisible,decomposed; those of MODEL by default.",
        group=MODEL,
        metavar="FORMS",
    )
    # The check of what was written.
    verify: bool = option(
        True,
        "Compare the vectors of MODEL with those of each installed library that can run the"
        " export.",
    )
    verify_texts: Sequence[PathLike] | None = option(
        None,
        "Further texts for the comparison: ru.txt with one sentence per line, or bitexts.",
        reads="texts or folders",
    )
    verify_only: bool = option(
        False, "Write nothing; compare the vectors of an exported folder with those of MODEL."
    )
    overwrite: bool = option(
        False, "Replace the folder if it holds a model of interlingua.", group=OUTPUT
    )


def run_export(
    options: ExportOptions, on_verified: Callable[[Verification], None] = lambda _: None
) -> Exported:
    """Write a model for other libraries, and verify its vectors there.

    The output is a directory for sentence-transformers, or graphs, or token vectors.

    Args:
        options: of the verb.
        on_verified: called with the comparison, also if vectors differ.

    Returns:
        The directory and how close its vectors are.

    Raises:
        ConfigError: options do not go together.
        CheckpointError: there is no model, or its vectors differ after the export.
    """
    kinds = [
        kind for kind in ("onnx", "int8", "openvino", "compact", "gguf") if getattr(options, kind)
    ]
    _refuse(options, kinds)
    check_inputs(options)
    _check_packages(options, kinds)
    if options.verify_only:
        check_folder(options.output)
    from interlingua.exporters.sentence_transformers import ExportSettings
    from interlingua.exporters.sentence_transformers import export_model as export_directory
    from interlingua.exporters.shrink import ShrinkOptions
    from interlingua.exporters.verify import with_texts_of

    model = os.fspath(options.model)
    output = Path(options.output)
    # Texts to compare vectors on: those of the library, and the user's.
    samples = with_texts_of(tuple(options.verify_texts or ()))
    if options.verify_only:
        return Exported(output, _verify(model, output, samples, on_verified))
    smaller = ShrinkOptions(
        texts=options.vocabulary_of or (),
        layers=options.layers,
        components_of=options.components_of or (),
        truncate_dim=options.truncate_dim,
        ranges_of=options.ranges_of or (),
    )
    settings = ExportSettings(
        dtype=options.dtype,
        name=options.name,
        license=options.license,
        results=options.results or (),
        check=options.verify,
        overwrite=options.overwrite,
        smaller=smaller,
        samples=samples,
        on_verified=on_verified,
        text_forms=_text_forms(options.text_forms),
    )
    # One of three: token vectors, graphs, or a directory for sentence-transformers.
    if options.static:
        from interlingua.verbs.parts.export_static import export_static

        corpus = Path(options.corpus or "")
        overrides = list(options.settings or ())
        done, lines = export_static(
            model, output, corpus, settings, dim=options.dim, overrides=overrides
        )
        return Exported(output, done, lines)
    if kinds:
        from interlingua.exporters.graphs import export_graphs

        done = export_graphs(model, output, kinds, settings)  # type: ignore[arg-type]
        lines = [*_without_weights(model, output, kinds), *_text_forms_note(output, kinds)]
        return Exported(output, done, lines)
    done = export_directory(model, output, settings)
    return Exported(output, done, _text_forms_note(output, kinds))


def _text_forms(named: str | None) -> tuple[str, ...] | None:
    """Read the option ``text_forms``; None means the forms of the model."""
    from interlingua.corpus.forms.text_forms import TEXT_FORMS

    if named is None:
        return None
    if named == "all":
        return TEXT_FORMS
    if named == "none":
        return ()
    return tuple(form.strip() for form in named.split(","))


def _text_forms_note(output: Path, kinds: Sequence[str]) -> list[str]:
    """Report which forms of text the exported model reverts, and which only interlingua reverts."""
    from interlingua.exporters.card import LIBRARY, forms_note
    from interlingua.vocabulary.vocabulary import Vocabulary

    forms = Vocabulary.load(output).text_forms
    if not forms:
        return []
    library = "gguf" if list(kinds) == ["gguf"] else LIBRARY
    return [f"{output}: forms of texts: {forms_note(forms, library)}"]


_PACKAGES = {
    "onnx": (("onnx", "onnx"), ("onnxruntime", "onnx")),
    "int8": (("onnx", "onnx"), ("onnxruntime", "onnx")),
    "compact": (("onnx", "onnx"), ("onnxruntime", "onnx")),
    "openvino": (("onnx", "openvino"), ("openvino", "openvino")),
    "gguf": (("gguf", "gguf"), ("xllamacpp", "gguf")),
}
"""Kind of graph -> the module and extra that write it, and those that run it to compare vectors."""


def _without_weights(model: str, output: Path, kinds: Sequence[str]) -> list[str]:
    """Warn that sentence-transformers can't load a directory that has only graphs."""
    if "compact" in kinds:
        return []
    return [
        f"{output} contains graphs without weights, which sentence-transformers and transformers"
        " cannot load; to write weights, run: interlingua export"
        f" {model} -o DIR; --compact writes both"
    ]


def _check_packages(options: ExportOptions, kinds: Sequence[str]) -> None:
    """Check the packages that write the directory and run it, before torch is imported.

    Raises:
        MissingExtraError: a library is not installed.
    """
    for kind in kinds:
        writer, runner = _PACKAGES[kind]
        # The package openvino is always needed, because it also writes the graph.
        needed = [writer, runner] if options.verify or kind == "openvino" else [writer]
        for module, extra in needed:
            require_extra(module, extra=extra)
    has_weights = not kinds or "compact" in kinds
    if has_weights and options.verify and not options.verify_only:
        require_extra(
            "sentence_transformers", package="sentence-transformers", extra="sentence-transformers"
        )


def _verify(
    model: str, output: Path, samples: Any, on_verified: Callable[[Verification], None]
) -> Verification:
    """Compare the vectors of a directory that was exported earlier with those of the model."""
    from interlingua.encoder.encoder import Encoder
    from interlingua.exporters.sentence_transformers import find_model
    from interlingua.exporters.verify import verify

    encoder = Encoder.load(find_model(model)[0])
    return verify(encoder, output, samples, on_verified=on_verified)


def _refuse(options: ExportOptions, kinds: list[str]) -> None:
    """Refuse options that exclude each other."""
    if options.static and (kinds or options.verify_only):
        other = "verify-only"
        if not options.verify_only:
            other = kinds[0]
        raise ConfigError(
            f"--static and --{other} cannot be combined; export with --static first, then export"
            " its directory"
        )
    if options.verify_only and kinds:
        raise ConfigError(f"--verify-only and --{kinds[0]} cannot be combined; remove --{kinds[0]}")
    if options.static and options.corpus is None:
        raise ConfigError(
            "--static requires --corpus; pass the folder that `interlingua prepare` wrote"
        )
    of_static = {"corpus": options.corpus, "dim": options.dim, "set": options.settings}
    for name, value in of_static.items():
        if value is not None and not options.static:
            raise ConfigError(f"--{name} requires --static; add --static, or remove it")


export = function_of(ExportOptions, run_export, "export")
