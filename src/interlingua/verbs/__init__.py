"""The verbs: each an options dataclass and a Python function, from which its command line is made
too.
"""
