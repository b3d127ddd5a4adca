"""Language identification for cleaning, through py3langid (about 140 languages, no network)."""

from __future__ import annotations

from interlingua.config import languages
from interlingua.errors import import_extra

# Groups of languages that identification programs confuse, by the labels of py3langid: a text in
# another language of the same group does not count as wrong.
_RELATIVES = tuple(
    frozenset(group.split())
    for group in (
        "no nb nn da sv fo is",
        "hr sr bs sl mk bg",
        "id ms jv su tl bcl ace",
        "cs sk sl pl",
        "es gl pt ca an oc it fr la ro ext vec lij wa",
        "ru uk be bg mk sr kk ky mn tt ba",
        "hi mr ne sa gom",
        "ar arz ary fa ur ps ug ku sdh",
        "zh ja yue wuu",
        "de lb nl af fy",
        "xh zu rw sw st nso sn lg ln kik",
        "az tr tk uz uzs kk tt ba crh ky",
        "fi et se",
        "lv lt ltg",
        "bn as",
        "fr ht gcf gcr wa br",
        "en pcm",
        "ga gd",
        "he hbo",
        "el grc",
    )
)


class LanguageCheck:
    """Check whether a text is clearly in a language other than the expected one.

    Args:
        min_confidence: probability (0 to 1) the other language must reach.

    Raises:
        MissingExtraError: py3langid is not installed.
    """

    def __init__(self, min_confidence: float) -> None:
        langid = import_extra("py3langid.langid", package="py3langid", extra="langid")
        self._min_confidence = min_confidence
        self._identifier = langid.LanguageIdentifier.from_model_file(
            langid.MODEL_FILE, norm_probs=True
        )
        self.supported = frozenset(self._identifier.labels)

    def is_wrong(self, text: str, language: str) -> bool:
        """Return whether another language, not closely related to ``language``, is likely enough.

        Languages (and scripts of a language) that the identifier does not know always pass.
        """
        expected = self._label(languages.resolve_language(language))
        if expected is None:
            return False
        found, probability = self._identifier.classify(text)
        if probability < self._min_confidence:
            return False
        # In ISO 639, text without a language, such as numbers, is zxx.
        return found != "zxx" and not _are_related(expected, found)

    def _label(self, language: languages.Language) -> str | None:
        # The identifier knows a language in its usual script only, and not, say, Arabic in Latin
        # letters. It knows Chinese in both scripts.
        usual_script = languages.resolve_language(language.iso3).script
        scripts = {language.script, usual_script}
        if len(scripts) > 1 and scripts != {"Hans", "Hant"}:
            return None
        labels = ("no" if language.iso1 == "nb" else language.iso1, language.iso3)
        return next((label for label in labels if label in self.supported), None)


def _are_related(a: str, b: str) -> bool:
    return a == b or any(a in group and b in group for group in _RELATIVES)
