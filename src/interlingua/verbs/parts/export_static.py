"""Export of token vectors: trained, written and compared with the model that they come from.

The model is the teacher of a static model: a table with one vector per token. The vector of a text
is the mean of the vectors of its tokens. The training run has its own folder, so that an
interrupted run can resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlingua.errors import InterlinguaError

if TYPE_CHECKING:
    from interlingua.evaluation.validation import Evaluator
    from interlingua.exporters.sentence_transformers import ExportSettings


def export_static(
    model: str,
    output: Path,
    corpus: Path,
    settings: ExportSettings,
    *,
    dim: int | None,
    overrides: Sequence[str],
) -> tuple[Any, list[str]]:
    """Train a vector for each token and write them.

    ``training.static_models.static_training`` describes the training, and
    ``exporters.sentence_transformers`` describes the directory.

    Args:
        model: the teacher.
        output: the new directory.
        corpus: folder that ``interlingua prepare`` wrote.
        settings: settings of the exported directory.
        dim: width of the vectors; the teacher's by default.
        overrides: keys of the training run.

    Returns:
        How close the written vectors are, if that was checked, and the report in lines.

    Raises:
        InterlinguaError: the training was stopped.
    """
    from interlingua.corpus.formats.evaluation_sets import pair_files
    from interlingua.encoder.encoder import Encoder
    from interlingua.evaluation.speed_gain import against
    from interlingua.exporters.sentence_transformers import export_model, find_model
    from interlingua.training.static_models.static_training import train_static, usual_prompt

    teacher = Encoder.load(find_model(model)[0])
    work = output.with_name(f"{output.name}-training")
    result = train_static(
        teacher,
        corpus,
        work,
        dim=dim,
        overrides=overrides,
        evaluate=_evaluator(corpus / "valid_text"),
    )
    if result.interrupted:
        raise InterlinguaError(
            f"stopped after step {result.step} of {result.max_steps}, saved in {work}; run the"
            " same command again to resume"
        )
    best = result.best or result.model
    assert best is not None
    done = export_model(best, output, settings)
    lines = []
    # Prefer held-out pairs to the validation pairs, by which the best model was chosen.
    folders = (corpus / "heldout", corpus / "valid_text")
    folder = next(filter(pair_files, folders), None)
    if folder is not None:
        teacher.eval()  # without dropout
        compared = against(teacher, Encoder.load(output), folder, prompt=usual_prompt(teacher))
        lines = [f"{model} (slow) and {output} (fast) on {folder}:", *compared.lines()]
    return done, [*lines, f"{work}: the training run; delete it when it is no longer needed"]


def _evaluator(folder: Path) -> Evaluator | None:
    from interlingua.corpus.formats.evaluation_sets import pair_files
    from interlingua.evaluation.validation import validation_evaluator

    if not pair_files(folder):
        return None
    return validation_evaluator(folder)
