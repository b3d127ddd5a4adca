"""Refusal of options without effect: a user would believe that they were applied."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlingua.errors import ConfigError

TRAIN_SECTIONS = ("data", "encoder", "method", "optimizer", "run", "schedule")
"""Sections of the files of ``interlingua train``."""


def refuse_unread(config: Any, *names: str, reason: str, when: bool) -> None:
    """Refuse an option that was changed from its default though nothing would read it.

    Args:
        config: a dataclass.
        names: fields that nothing reads in a certain case.
        reason: the setting because of which nothing reads them, such as ``"mlp = false"``.
        when: whether this setting applies.

    Raises:
        ConfigError: one of them has another value than its default.
    """
    for name in _changed(config, names, when):
        raise ConfigError(f"{name} has no effect with {reason}; remove one of them")


def refuse_without(config: Any, *names: str, needs: str, when: bool) -> None:
    """Refuse an option that was changed from its default though the option it needs is missing.

    Args:
        config: a dataclass.
        names: fields that nothing reads in a certain case.
        needs: the option without which nothing reads them.
        when: whether that option is missing.

    Raises:
        ConfigError: one of them has another value than its default.
    """
    for name in _changed(config, names, when):
        raise ConfigError(f"{name} requires {needs}; set {needs}, or remove {name}")


def _changed(config: Any, names: Sequence[str], when: bool) -> Iterator[str]:
    """Yield the named fields whose values differ from their defaults, if ``when`` is true."""
    if not when:
        return
    for field in dataclasses.fields(config):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name in names and getattr(config, field.name) != default:
            yield field.name


def train_key_hint(section: str, values: Any) -> str:
    """Return a hint on how to set a key of train's files in another verb; empty for other sections.

    Args:
        section: name of the section, such as ``run`` if ``--set run.threads=1`` was passed to a
            verb that does not read train's files.
        values: the keys of the section with their values.
    """
    if section not in TRAIN_SECTIONS or not isinstance(values, Mapping):
        return ""
    for name, value in values.items():
        if name == "threads":
            return f"; set the number of threads in the environment: OMP_NUM_THREADS={value}"
        if section == "run" and name in ("device", "devices"):
            return f"; pass --{name} {value}"
    return f"; [{section}] is a section of the files of `interlingua train`; see --help"


def train_key_hint_of(setting: str) -> str:
    """Return ``train_key_hint`` for a setting such as ``run.threads=1`` or ``threads=1``."""
    key, _, value = setting.partition("=")
    section, _, name = key.strip().rpartition(".")
    if name == "threads":
        section = section or "run"
    return train_key_hint(section, {name: value.strip()})
