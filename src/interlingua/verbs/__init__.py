"""The verbs: each an options dataclass and a Python function.

The command line of a verb is made from the same dataclass, see ``options``. A verb checks its
options, loads what it needs and hands over to the package that does the work. These packages are
imported inside of the functions, so that ``--help`` and a mistake need no torch, which takes
seconds to import.
"""
