"""The verbs; each one is an options dataclass and a Python function.

The command line of a verb is generated from the same dataclass, see ``options``. A verb checks its
options, loads models and data, and calls the package that does the work. These packages are
imported inside the functions, because importing torch takes seconds, and ``--help`` and error
messages do not need torch.
"""
