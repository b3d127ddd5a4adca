"""The model card: README.md with YAML front matter, written from the record of a run."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlingua import __version__
from interlingua.config.languages import resolve_language
from interlingua.corpus.forms.text_forms import IN_TOKENIZER_FILE
from interlingua.corpus.manifest import MANIFEST_FILE as MANIFEST
from interlingua.corpus.manifest import Manifest
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.static import StaticBackbone
from interlingua.errors import CheckpointError, DataError
from interlingua.report.tables import Table, escape_markdown
from interlingua.storage.json_text import parse_json, read_json_text

log = logging.getLogger("interlingua")
LIBRARY = "sentence-transformers"
TAGS = ("feature-extraction", "sentence-similarity", "interlingua")


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """Facts for a card that the model itself does not hold; unknown facts are left out."""

    name: str
    """Heading of the card."""
    license: str | None = None
    """SPDX identifier the model is published under."""
    method: str | None = None
    """Training method, e.g. ems."""
    languages: tuple[str, ...] = ()
    """Codes of the languages of the training data."""
    sources: tuple[tuple[str, str, int], ...] = ()
    """Name, license and training pairs of each source."""
    results: tuple[tuple[str, str, str, float], ...] = ()
    """For each result: the task; the settings that differ from the defaults of the task and the
    model; the measure; and the mean of this measure over the languages."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the libraries it was trained with."""


def read_provenance(
    run: Path | None,
    *,
    name: str,
    digest: str,
    license: str | None = None,
    results: Iterable[Path] = (),
) -> Provenance:
    """Collect the facts from a run's folder, its corpus's manifest and result files.

    Args:
        run: the folder that ``interlingua train`` wrote, or None.
        name: of the model.
        digest: of the model; results of this model are recognized by it.
        license: of the model. The card lists the licenses of the data next to it; the user has to
            decide whether they allow the license of the model.
        results: files that ``interlingua evaluate`` wrote, or folders of them; those of other
            models are left out, with a warning.

    Raises:
        CheckpointError: a result file is broken.
    """
    record: dict[str, Any] = {}
    if run is not None and (run / MANIFEST).exists():
        record = _read_json(run / MANIFEST)
    # The config as the user wrote it, which names the corpus; it may lack data and method.
    config = record.get("requested", {})
    corpus = _corpus_manifest(config.get("data", {}).get("corpus"))
    languages: tuple[str, ...] = ()
    sources: tuple[tuple[str, str, int], ...] = ()
    if corpus is not None:
        languages = corpus.languages
        # The model has learned nothing from a source that has no training pairs left.
        sources = tuple((s.name, s.license, s.train) for s in corpus.sources if s.train)
    return Provenance(
        name=name,
        license=license,
        method=config.get("method", {}).get("name"),
        languages=languages,
        sources=sources,
        results=_main_scores(results, digest),
        versions=record.get("versions", {}),
    )


def model_card(
    encoder: Encoder, provenance: Provenance, *, usage: str = "", library: str = LIBRARY
) -> str:
    """Return the README.md of a model directory.

    Args:
        encoder: the model.
        provenance: the facts that the model itself does not hold.
        usage: the section on how to use it; default: with sentence-transformers.
        library: name of the library that loads the model.
    """
    parts = [
        _front_matter(provenance, library),
        f"# {provenance.name}",
        f"A multilingual sentence encoder: texts in, vectors of {encoder.dim} numbers out;"
        " sentences that mean the same lie close together, whatever their language.",
        usage or stock_usage(encoder, provenance.name),
        _facts(encoder, provenance),
    ]
    if encoder.vocabulary.text_forms:
        parts += ["## Forms of texts", forms_note(encoder.vocabulary.text_forms, library)]
    if provenance.sources:
        rows = [
            (name, license or "not recorded", f"{pairs:,}")
            for name, license, pairs in provenance.sources
        ]
        parts += ["## Training data", _table(("source", "license", "pairs"), rows)]
    if provenance.languages:
        names = ", ".join(
            f"{resolve_language(code).name} ({code})" for code in provenance.languages
        )
        parts += ["## Languages", names]
    if provenance.results:
        shown = [(*words, f"{100 * score:.2f} %") for *words, score in provenance.results]
        head = ("task", "settings", "measure", "value")
        parts += ["## Results", "Means over the languages of each task.", _table(head, shown)]
    return "\n\n".join(parts) + "\n"


def forms_note(forms: Sequence[str], library: str = LIBRARY) -> str:
    """Describe the forms of texts that the model undoes, and those that only this library undoes.

    Args:
        forms: of the vocabulary.
        library: name of the library that loads the model.
    """
    note = f"Undone before a text is tokenized: {', '.join(forms)}."
    # llama.cpp has a tokenizer of its own, and reads no tokenizer.json.
    carried = () if library == "gguf" else IN_TOKENIZER_FILE
    left_out = [form for form in forms if form not in carried]
    if left_out:
        note += (
            f" Only interlingua undoes {', '.join(left_out)}; for the same vectors elsewhere, give"
            " texts that went through `interlingua.corpus.forms.text_forms.undo_forms`."
        )
    return note


def _front_matter(provenance: Provenance, library: str) -> str:
    """Return YAML with all strings in quotes: ``no`` is Norwegian, not false."""
    # The hub takes codes of two letters where they exist, else of three; the scripts of a language
    # share its code.
    languages = sorted(
        {
            resolve_language(code).iso1 or resolve_language(code).iso3
            for code in provenance.languages
        }
    )
    lines = ["---"]
    if languages:
        lines += ["language:", *(f"- {json.dumps(code)}" for code in languages)]
    if provenance.license:
        # The hub's identifier: Apache-2.0 is apache-2.0, GPL-3.0-or-later gpl-3.0.
        identifier = re.sub(r"-(only|or-later)$", "", provenance.license.lower())
        lines.append(f"license: {json.dumps(identifier)}")
    lines += [f"library_name: {library}", "pipeline_tag: sentence-similarity", "tags:"]
    return "\n".join([*lines, *(f"- {tag}" for tag in (library, *TAGS)), "---"])


def stock_usage(encoder: Encoder, name: str, *, in_bytes: bool = False) -> str:
    """Return a card's section on the use of a model with sentence-transformers.

    Args:
        encoder: the model.
        name: of the model.
        in_bytes: whether its weights are token vectors in int8.
    """
    prompts = encoder.settings.prompts
    arguments = ""
    if prompts:
        arguments = f", prompt_name={json.dumps(next(iter(prompts)))}"
    # sentence-transformers cuts vectors after its modules have scaled them.
    if encoder.settings.truncate_dim is not None and encoder.settings.normalize:
        arguments += ", normalize_embeddings=True"
    # Without this code transformers would load the weights as those of BERT.
    code = ""
    if encoder.backbone.config.positions == "alibi":
        code = ", trust_remote_code=True"
    needed = ""
    if in_bytes:
        needed = "\n\nNumbers are stored as bytes, which sentence-transformers reads from 6.2 on."
    return f"""## Use

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer({json.dumps(name)}{code})  # or the path of this directory
vectors = model.encode(["The cat sits on the mat.", "Die Katze sitzt auf der Matte."]{arguments})
print(model.similarity(vectors, vectors))
```

or, faster on a CPU, `interlingua.load({json.dumps(name)}).encode([...])`.{needed}"""


def _facts(encoder: Encoder, provenance: Provenance) -> str:
    """Return the table of the model's own figures."""
    config = encoder.backbone.config
    settings = encoder.settings
    backbone = (
        f"{config.model_type}, {config.num_hidden_layers} layers, {config.num_attention_heads}"
        " heads"
    )
    longest = f"{encoder.max_tokens} tokens"
    if isinstance(encoder.backbone, StaticBackbone):
        backbone = "none: a vector for each token, and their mean"
        longest = "any"
    parameters = sum(parameter.numel() for parameter in encoder.backbone.parameters())
    rows = [
        ("backbone", backbone),
        ("parameters", f"{parameters:,}"),
        ("vocabulary", f"{encoder.vocabulary.size:,} entries"),
        ("dimensions", str(encoder.dim)),
    ]
    shorter = [dim for dim in settings.matryoshka_dims if dim < encoder.dim]
    if shorter:
        rows.append(("can be cut to", ", ".join(map(str, shorter))))
    rows += [("pooling", settings.pooling), ("longest input", longest)]
    rows += [(f"prompt `{name}`", f"`{text}`") for name, text in settings.prompts.items()]
    if provenance.method:
        rows.append(("method", provenance.method))
    rows.append(("digest", f"`{encoder.digest()[:16]}`"))
    rows += [(f"trained with {name}", version) for name, version in provenance.versions.items()]
    rows.append(("written by", f"interlingua {__version__}"))
    return "## Model\n\n" + _table(("", ""), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    cells = [list(map(escape_markdown, row)) for row in rows]
    return Table("", head, cells, words=range(len(head))).markdown().rstrip("\n")


def _corpus_manifest(corpus: str | None) -> Manifest | None:
    if not corpus:
        return None
    # The corpus may have been removed or moved since the training.
    try:
        return Manifest.load(corpus)
    except DataError:
        return None


def _main_scores(paths: Iterable[Path], digest: str) -> tuple[tuple[str, str, str, float], ...]:
    """Return the scores from the results of this model only.

    Each has the task, the settings, the main measure, and the measure's mean over the subsets.
    """
    files = _result_files(paths)
    found = []
    others = 0
    for file in files:
        content = _read_json(file)
        # A file from another tool may lack any of these keys, or have values of other types.
        try:
            scores = [
                entry["main_score"] for split in content["scores"].values() for entry in split
            ]
            own = content.get("interlingua", {})
            model = own.get("provenance", {}).get("model", {})
            # The folder may hold the results of several models.
            if model.get("digest") != digest:
                others += 1
                continue
            # The table shows only settings that differ from the defaults of the task and the model.
            changed = [f"{option}={_words(own['settings'][option])}" for option in own["changed"]]
            settings = ", ".join([*model["overrides"], *changed])
            mean = sum(scores) / len(scores)
            found.append((content["task_name"], settings, own["main_metric"], mean))
        except (KeyError, TypeError, ZeroDivisionError, AttributeError) as error:
            raise CheckpointError(
                f"{file}: is not a result file ({error}); pass a file that `interlingua"
                " evaluate` wrote"
            ) from error
    if others:
        log.warning(
            "the card omits %d of %d result files, which belong to other models",
            others,
            len(files),
        )
    return tuple(found)


def _result_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files themselves, and all JSON files below folders."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted(path.rglob("*.json"))
        else:
            files.append(path)
    return files


def _words(value: Any) -> str:
    """Return a setting's value as text for a table cell."""
    if isinstance(value, list):
        return "+".join(map(str, value))
    return str(value)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = parse_json(read_json_text(path))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); check the file") from error
    return content
