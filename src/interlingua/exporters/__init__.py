"""Models for use elsewhere, with their cards, and the proof that vectors stay the same."""

from interlingua.callable_package import make_callable

make_callable(__name__)
