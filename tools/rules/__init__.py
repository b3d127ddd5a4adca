"""Rules of ``tools/house.py``, one module per subject.

``tools/words.py`` and ``tools/density.py`` contain two more rules.
"""
