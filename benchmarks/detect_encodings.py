"""Detect the encodings of texts that are not Unicode, and count what is read wrongly.

    python benchmarks/detect_encodings.py ~/.cache/interlingua/data/flores200_devtest

The folder has a text per language, a sentence a line (``deu_Latn.txt``). Of each, 2 to 100 lines
are written in the encodings below, and read again without a declaration.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from interlingua.corpus.documents.encodings import decode_file
from interlingua.errors import DataError

ENCODINGS = {
    "deu_Latn": ["cp1252", "cp850", "utf-16"], "fra_Latn": ["cp1252", "mac-roman"],
    "spa_Latn": ["iso8859-1"], "por_Latn": ["cp1252"], "ita_Latn": ["cp1252"],
    "nld_Latn": ["cp1252"], "eng_Latn": ["cp1252"], "swe_Latn": ["cp1252"],
    "fin_Latn": ["cp1252"], "dan_Latn": ["cp1252"], "isl_Latn": ["cp1252"],
    "pol_Latn": ["cp1250"], "ces_Latn": ["iso8859-2", "cp852"], "slk_Latn": ["cp1250"],
    "hun_Latn": ["cp1250", "iso8859-2"], "slv_Latn": ["cp1250"], "hrv_Latn": ["cp1250"],
    "ron_Latn": ["cp1250"], "tur_Latn": ["cp1254"], "est_Latn": ["cp1257"],
    "lit_Latn": ["cp1257"], "lvs_Latn": ["cp1257"], "vie_Latn": ["cp1258"],
    "rus_Cyrl": ["cp1251", "koi8-r", "iso8859-5", "cp866", "utf-16-le"],
    "ukr_Cyrl": ["cp1251", "koi8-u"], "bul_Cyrl": ["cp1251"], "mkd_Cyrl": ["cp1251"],
    "srp_Cyrl": ["cp1251"], "ell_Grek": ["cp1253", "iso8859-7"], "heb_Hebr": ["cp1255"],
    "arb_Arab": ["cp1256"], "pes_Arab": ["cp1256"], "tha_Thai": ["tis-620"],
    "zho_Hans": ["gb18030", "gbk"], "zho_Hant": ["big5"], "kor_Hang": ["euc_kr"],
    "jpn_Jpan": ["shift_jis", "euc_jp", "iso2022_jp", "utf-16-be"],
}  # fmt: skip
PARTS = [(0, 2), (10, 12), (20, 30), (40, 50), (100, 200)]


def main() -> None:
    folder = Path(sys.argv[1])
    total: Counter[str] = Counter()
    for language, charsets in ENCODINGS.items():
        lines = (folder / f"{language}.txt").read_text(encoding="utf-8").splitlines()
        for charset in charsets:
            found = Counter(
                outcome("\n".join(lines[start:stop]).encode(charset, "ignore"), charset)
                for start, stop in PARTS
            )
            total += found
            print(f"{language}\t{charset}\t{dict(found)}")
    print(*(f"{total[name]} {name}" for name in ("right", "refused", "wrong")), sep=", ")


def outcome(content: bytes, charset: str) -> str:
    """Return whether a text is read as it was written."""
    try:
        text = decode_file(content, "text").text
    except DataError:
        return "refused"
    return "right" if text == content.decode(charset) else "wrong"


if __name__ == "__main__":
    main()
