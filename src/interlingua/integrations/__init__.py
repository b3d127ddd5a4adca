"""The encoder as other libraries want it: LangChain, scikit-learn and Chroma.

Each module needs its own extra.
"""
