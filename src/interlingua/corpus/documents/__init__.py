"""Documents of all kinds as units: headings, paragraphs, list items, table cells and cues."""

from interlingua.corpus.documents.finding import LeftOut, find_documents
from interlingua.corpus.documents.kinds import DOCUMENT_SUFFIXES
from interlingua.corpus.documents.reading import read_document
from interlingua.corpus.documents.units import TextDocument as Document
from interlingua.corpus.documents.units import TextUnit as Unit

__all__ = [
    "DOCUMENT_SUFFIXES",
    "Document",
    "LeftOut",
    "Unit",
    "find_documents",
    "read_document",
]
