"""Files that translators work in: subtitles and catalogs of user interfaces."""
