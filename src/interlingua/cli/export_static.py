"""``interlingua export MODEL -o DIR --static``: train token vectors, write them, say what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlingua.errors import InterlinguaError

if TYPE_CHECKING:
    from interlingua.evaluation.validation import Evaluator


def export_static(
    model: str, output: Path, corpus: Path, *, dim: int | None, overrides: Sequence[str], **options: Any
) -> Any:
    """See ``interlingua.train.static`` and ``interlingua.export.sentence_transformers.export``."""
    from interlingua.corpus.evaluation_sets import pair_files
    from interlingua.encoder.encoder import Encoder
    from interlingua.evaluation.against import against
    from interlingua.export.sentence_transformers import export, find_model
    from interlingua.train.static import train_static, usual_prompt

    teacher = Encoder.load(find_model(model)[0])
    work = output.with_name(f"{output.name}-training")
    result = train_static(
        teacher, corpus, work, dim=dim, overrides=overrides, evaluate=_evaluator(corpus / "valid_text")
    )
    if result.interrupted:
        raise InterlinguaError(
            f"stopped after step {result.step} of {result.max_steps}, saved in {work}; the same command goes on"
        )
    best = result.best or result.model
    assert best is not None
    done = export(best, output, **options)
    folder = next((corpus / name for name in ("heldout", "valid_text") if pair_files(corpus / name)), None)
    if folder is not None:
        teacher.eval()
        compared = against(teacher, Encoder.load(output), folder, prompt=usual_prompt(teacher))
        print(f"{model} (slow) and {output} (fast) on {folder}:")
        for line in compared.lines():
            print(line)
    print(f"{work}: the training run; remove it when you are done")
    return done


def _evaluator(folder: Path) -> Evaluator | None:
    from interlingua.corpus.evaluation_sets import pair_files
    from interlingua.evaluation.validation import validation_evaluator

    return validation_evaluator(folder) if pair_files(folder) else None
