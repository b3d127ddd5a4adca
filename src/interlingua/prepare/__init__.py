"""From files of parallel text to a corpus to train on: clean, deduplicated, decontaminated, split and tokenised."""
