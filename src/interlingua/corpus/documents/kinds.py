"""Kinds of documents by the endings of their names."""

from __future__ import annotations

from interlingua.storage.files import PathLike, stem_and_suffix

TEXT_SUFFIXES = (".txt", ".text")
MARKDOWN_SUFFIXES = (".md", ".markdown")
HTML_SUFFIXES = (".html", ".htm", ".xhtml")
OFFICE_SUFFIXES = (".docx", ".odt", ".epub", ".pdf")
CAPTION_SUFFIXES = (".srt", ".vtt")
GETTEXT_SUFFIXES = (".po",)
XLIFF_SUFFIXES = (".xlf", ".xliff", ".sdlxliff", ".mqxliff")
SECTION_SUFFIXES = (*MARKDOWN_SUFFIXES, *HTML_SUFFIXES, *OFFICE_SUFFIXES, *CAPTION_SUFFIXES)
"""Files that an index reads section by section."""
DOCUMENT_SUFFIXES = (*TEXT_SUFFIXES, *SECTION_SUFFIXES, *GETTEXT_SUFFIXES, *XLIFF_SUFFIXES)
"""Files that ``read_document`` reads."""
_SAVE_AS_DOCX = "save it as .docx"
OTHER_DOCUMENTS = {
    ".rtf": _SAVE_AS_DOCX,
    ".doc": _SAVE_AS_DOCX,
    ".dot": _SAVE_AS_DOCX,
    ".wpd": _SAVE_AS_DOCX,
    ".pages": _SAVE_AS_DOCX,
    ".sxw": "save it as .odt",
    ".mobi": "convert it to .epub",
    ".azw": "convert it to .epub",
    ".azw3": "convert it to .epub",
    ".fb2": "convert it to .epub",
    ".djvu": "convert it to .pdf with a text layer",
    ".ps": "convert it to .pdf",
    ".ppt": "save it as .pdf",
    ".pptx": "save it as .pdf",
    ".odp": "save it as .pdf",
    ".tex": "convert it to .html or .docx",
    ".rst": "convert it to .html or .md",
    ".adoc": "convert it to .html or .md",
}
"""Documents that are not read, with remedies."""


def has_sections(path: PathLike) -> bool:
    """Return whether an index reads a file section by section, by its name."""
    return stem_and_suffix(path)[1] in SECTION_SUFFIXES


def is_document(path: PathLike) -> bool:
    """Return whether a file, by its name, is a document other than plain text."""
    suffix = stem_and_suffix(path)[1]
    return suffix in DOCUMENT_SUFFIXES and suffix not in TEXT_SUFFIXES
