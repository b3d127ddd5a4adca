"""Token vectors trained on parallel text, by any method of [method].

They start as a transformer's vectors of single tokens. A sentence's vector is then pooled from its
tokens' vectors, without any layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interlingua.batches.token_store import TokenStore
from interlingua.config import apply_override
from interlingua.encoder.dual_encoder import QUERY_PROMPT
from interlingua.encoder.encode import encode_tokens
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.texts import is_blank
from interlingua.errors import ConfigError
from interlingua.storage.arrays import normalize_rows
from interlingua.storage.files import PathLike
from interlingua.training.config import LENGTHS, TrainConfig, train_config_from
from interlingua.training.loop import run_training
from interlingua.training.result import TrainResult
from interlingua.training.static_models.static_start import static_start
from interlingua.training.validation import Evaluate
from interlingua.vocabulary.vocabulary import Vocabulary

RECIPE: dict[str, Any] = {
    "method": {"name": "infonce", "temperature": 0.05, "exclude_repeats": True},
    "data": {"temperature": 2.0},
    "optimizer": {"name": "adam", "learning_rate": 1e-2, "weight_decay": 0.0},
    "schedule": {"name": "linear", "warmup_steps": 0.05},
    "run": {
        "max_steps": 2000,
        "global_batch_size": 1024,
        "logging_steps": 0.02,
        "metric_for_best_model": "tatoeba_accuracy",
        "greater_is_better": True,
    },
}
"""Settings that ``static_run_config`` uses instead of the defaults of a run."""


class WithPrompt:
    """An encoder that puts one of its prompts before every text, unless the call names another.

    Args:
        encoder: the model.
        prompt: name of one of its prompts.
    """

    def __init__(self, encoder: Encoder, prompt: str | None) -> None:
        self.encoder = encoder
        self.prompt = prompt
        self.dim = encoder.dim

    def encode(self, texts: Any, *, prompt: str | None = None, **options: Any) -> Any:
        """Encode texts with the prompt, see ``Encoder.encode``."""
        if prompt is None:
            prompt = self.prompt
        vectors = self.encoder.encode(texts, prompt=prompt, **options)
        blank_rows = [row for row, text in enumerate(texts) if is_blank(text)]
        # A token for a space gets the vector of the prompt without a text: zeros would change the
        # mean of all vectors.
        before = self.encoder.settings.prompt_text(prompt)
        ids = self.encoder.vocabulary.encode([before], max_tokens=self.encoder.max_tokens)
        alone = encode_tokens(self.encoder, ids, normalize=False)[:, : vectors.shape[1]]
        vectors[blank_rows] = normalize_rows(alone)
        return vectors


def usual_prompt(encoder: Encoder) -> str | None:
    """Return the prompt for texts that are compared with one another: that of queries, or none."""
    if QUERY_PROMPT in encoder.settings.prompts:
        return QUERY_PROMPT
    return None


def static_run_config(
    start: Path,
    corpus: Path,
    output: Path,
    *,
    retrieval: bool = True,
    overrides: Sequence[str] = (),
) -> TrainConfig:
    """Return the config of the run that trains token vectors.

    Args:
        start: directory of the encoder to start from.
        corpus: folder that ``interlingua prepare`` wrote.
        output: folder of the run.
        retrieval: whether the best model is the one that finds most translations; otherwise it is
            the one with the lowest loss.
        overrides: ``"section.key=value"``; with another method none of the recipe's method options
            are used, and another length of the run replaces the recipe's.

    Raises:
        ConfigError: an override is wrong.
    """
    table: dict[str, Any] = {section: dict(values) for section, values in RECIPE.items()}
    table["data"]["corpus"] = str(corpus)
    table["encoder"] = {"path": str(start)}
    table["run"]["output"] = str(output)
    if not retrieval:
        table["run"]["metric_for_best_model"] = "valid_loss"
        table["run"]["greater_is_better"] = False
    # Overrides are read into a separate table: their keys decide which settings of the recipe stay.
    sections: dict[str, Any] = {}
    for override in overrides:
        apply_override(sections, override)
    for section, values in sections.items():
        if not isinstance(values, dict):
            raise ConfigError(
                f"--set {section}: expected SECTION.KEY=VALUE, for example run.max_steps=500"
            )
        # Another method would refuse the recipe's options, and two lengths contradict each other.
        if section == "method" and values.get("name", "infonce") != "infonce":
            table["method"] = {}
        if section == "run" and any(key in values for key in LENGTHS):
            table["run"].pop("max_steps")
        table.setdefault(section, {}).update(values)
    return train_config_from(table, where="--static")


def train_static(
    teacher: Encoder,
    corpus: Path,
    work: PathLike,
    *,
    dim: int | None = None,
    overrides: Sequence[str] = (),
    evaluate: Evaluate | None = None,
    progress: bool = False,
) -> TrainResult:
    """Distill token vectors from a transformer and train them on a corpus.

    Args:
        teacher: the transformer.
        corpus: folder that ``interlingua prepare`` wrote.
        work: folder for the start and the run; the same call resumes an interrupted run.
        dim: width of the vectors; default: the teacher's.
        overrides: see ``static_run_config``.
        evaluate: measures ``tatoeba_accuracy``; see ``interlingua.training.loop.run_training``.
        progress: whether to show progress on stderr.

    Returns:
        the run's result, with the directories of its models.

    Raises:
        ConfigError: a setting is wrong, or ``work`` holds another run.
        DataError: the corpus can't be read.
    """
    start = Path(work) / "start"
    run = Path(work) / "run"
    config = static_run_config(
        start, corpus, run, retrieval=evaluate is not None, overrides=overrides
    )
    # Made once; the same call later continues with the existing vectors.
    if not (start / "model.safetensors").is_file():
        vocabulary = Vocabulary.load(corpus / "vocabulary")
        store = TokenStore.open(corpus / "train")
        store.verify()
        counts = store.token_counts()
        prompted = WithPrompt(teacher, usual_prompt(teacher))
        static_start(prompted, vocabulary, counts, dim=dim).save(start)
    return run_training(config, evaluate=evaluate, progress=progress)
