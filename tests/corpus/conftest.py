"""How tests of the corpus write a file and read the pairs of one."""

import gzip
import json

from interlingua.corpus.formats.bitext import read_pairs


def write(path, *content):
    """Write one text, lines, or JSON objects per line, compressed if the name ends so."""
    parts = [part if isinstance(part, str) else json.dumps(part) for part in content]
    text = parts[0] if len(parts) == 1 and isinstance(content[0], str) else "\n".join([*parts, ""])
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def texts(path, **options):
    """Return the sides of each pair of a file."""
    return [(pair.source, pair.target) for pair in read_pairs(path, **options)]
