"""Adapters of the encoder to other libraries: LangChain, scikit-learn and Chroma.

Each module needs its own extra.
"""
