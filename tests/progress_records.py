"""A progress that remembers all states."""

from __future__ import annotations

from interlingua.runtime.progress import Progress, StepsLeft


class Recorded(Progress):
    """Remember every state.

    Attributes:
        states: what the work is at, how much is done, and all, after each ``advance``.
        counts: how much is done, and all, also after each ``start``.
        left: label and seconds left, by what ``expect`` announced, after each of both.
    """

    def __init__(self):
        self.states = []
        self.counts = []
        self.left = []
        self.label = self.text = ""
        self.done = 0
        self.total = None
        self.steps = StepsLeft()

    def expect(self, steps):
        self.steps.expect(steps())

    def start(self, total=None, unit="", label="", *, done=0):
        self.total, self.label, self.text, self.done = total, label, "", done
        self._count()

    def advance(self, count=1):
        self.done += count
        self._count()
        self.states.append((self.text or self.label, self.done, self.total))

    def note(self, text):
        self.text = text

    def _count(self):
        self.counts.append((self.done, self.total))
        self.left.append((self.label, self.steps(self.label, self.done, self.total or 0)))
