"""From files of parallel text to a corpus to train on.

The corpus is clean, deduplicated, decontaminated, split and tokenized.
"""

from interlingua.callable_package import make_callable

make_callable(__name__)
