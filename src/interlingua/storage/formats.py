"""All formats with a version that interlingua writes, in one table.

A record names its format and version in the key ``format``, as ``interlingua-corpus-2``. A version
is read only by the releases that write it. Any other version is refused, with a message that says
what to do instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TAG = re.compile(r"(interlingua-[a-z-]+)-(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Format:
    """A format of a record.

    Attributes:
        name: without version, ``interlingua-corpus``.
        version: version that this release reads and writes.
        remedy: what to do with a file that can't be read, in the imperative.
        is_sealed: the record holds a checksum of itself. False for records that other tools write
            or that occur as lines of larger files.
    """

    name: str
    version: int
    remedy: str
    is_sealed: bool = True

    @property
    def tag(self) -> str:
        """Name and version, as records hold them."""
        return f"{self.name}-{self.version}"

    def is_named_by(self, tag: object) -> bool:
        """Return whether a record's tag names this format, in any version."""
        match = _TAG.fullmatch(tag) if isinstance(tag, str) else None
        return match is not None and match[1] == self.name


ANALYSIS = Format("interlingua-analysis", 1, "run `interlingua analyse` again", is_sealed=False)
AVERAGE = Format("interlingua-average", 2, "average the models again")
CALIBRATION = Format("interlingua-calibration", 2, "create it with `interlingua calibrate`")
CHECKPOINT = Format("interlingua-checkpoint", 3, "resume from another checkpoint")
CORPUS = Format("interlingua-corpus", 2, "run `interlingua prepare` again")
DEBIAS = Format("interlingua-debias", 1, "run `interlingua debias` again")
DOCUMENTS = Format("interlingua-documents", 1, "use another --work folder")
EXTEND = Format("interlingua-extend", 2, "start over in another folder")
EMBEDDED = Format("interlingua-embedded", 2, "remove the file, or choose another folder")
MINING = Format("interlingua-mining", 3, "use another --work folder")
PASSAGE_INDEX = Format("interlingua-passage-index", 4, "run `interlingua index build` again")
QUICKSTART = Format("interlingua-quickstart", 2, "run `interlingua quickstart` again")
RUN = Format("interlingua-run", 2, "start over with --resume never")
SILVER = Format("interlingua-silver", 2, "mine the silver pairs again")
STAGES = Format("interlingua-stages", 2, "start over with --resume never")
TEACHER_BANK = Format(
    "interlingua-teacher-bank", 3, "remove the folder and run the same command again"
)
TOKEN_STORE = Format("interlingua-token-store", 1, "prepare the corpus again")
VECTOR_SCAN = Format("interlingua-vector-scan", 1, "run `interlingua index compact` on the index")
# Not sealed: it is a part of every model directory, which other tools read and write too.
VOCABULARY = Format(
    "interlingua-vocabulary", 1, "train or save the vocabulary again", is_sealed=False
)
VECTOR_FILE = b"vectors-2"
"""Format and version of the binary files of ``evaluation.vector_files``, at their start."""
