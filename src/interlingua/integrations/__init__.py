"""The encoder as other libraries want it: LangChain, scikit-learn and Chroma; each module needs its own extra."""
