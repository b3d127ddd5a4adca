"""The resolver: every test set's file names, aliases, locales, and what it says to a typing
error."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from interlingua.config.languages import (
    choose_code,
    find_code,
    is_locale,
    known,
    parse,
    resolve_code,
    resolve_language,
    scripts,
    written_code,
    written_tag,
)
from interlingua.errors import DataError

FLORES = """
ace_Arab ace_Latn acm_Arab acq_Arab aeb_Arab afr_Latn ajp_Arab aka_Latn als_Latn amh_Ethi apc_Arab
arb_Arab arb_Latn ars_Arab ary_Arab arz_Arab asm_Beng ast_Latn awa_Deva ayr_Latn azb_Arab azj_Latn
bak_Cyrl bam_Latn ban_Latn bel_Cyrl bem_Latn ben_Beng bho_Deva bjn_Arab bjn_Latn bod_Tibt bos_Latn
bug_Latn bul_Cyrl cat_Latn ceb_Latn ces_Latn cjk_Latn ckb_Arab crh_Latn cym_Latn dan_Latn deu_Latn
dik_Latn dyu_Latn dzo_Tibt ell_Grek eng_Latn epo_Latn est_Latn eus_Latn ewe_Latn fao_Latn fij_Latn
fin_Latn fon_Latn fra_Latn fur_Latn fuv_Latn gaz_Latn gla_Latn gle_Latn glg_Latn grn_Latn guj_Gujr
hat_Latn hau_Latn heb_Hebr hin_Deva hne_Deva hrv_Latn hun_Latn hye_Armn ibo_Latn ilo_Latn ind_Latn
isl_Latn ita_Latn jav_Latn jpn_Jpan kab_Latn kac_Latn kam_Latn kan_Knda kas_Arab kas_Deva kat_Geor
kaz_Cyrl kbp_Latn kea_Latn khk_Cyrl khm_Khmr kik_Latn kin_Latn kir_Cyrl kmb_Latn kmr_Latn knc_Arab
knc_Latn kon_Latn kor_Hang lao_Laoo lij_Latn lim_Latn lin_Latn lit_Latn lmo_Latn ltg_Latn ltz_Latn
lua_Latn lug_Latn luo_Latn lus_Latn lvs_Latn mag_Deva mai_Deva mal_Mlym mar_Deva min_Arab min_Latn
mkd_Cyrl mlt_Latn mni_Beng mos_Latn mri_Latn mya_Mymr nld_Latn nno_Latn nob_Latn npi_Deva nso_Latn
nus_Latn nya_Latn oci_Latn ory_Orya pag_Latn pan_Guru pap_Latn pbt_Arab pes_Arab plt_Latn pol_Latn
por_Latn prs_Arab quy_Latn ron_Latn run_Latn rus_Cyrl sag_Latn san_Deva sat_Olck scn_Latn shn_Mymr
sin_Sinh slk_Latn slv_Latn smo_Latn sna_Latn snd_Arab som_Latn sot_Latn spa_Latn srd_Latn srp_Cyrl
ssw_Latn sun_Latn swe_Latn swh_Latn szl_Latn tam_Taml taq_Latn taq_Tfng tat_Cyrl tel_Telu tgk_Cyrl
tgl_Latn tha_Thai tir_Ethi tpi_Latn tsn_Latn tso_Latn tuk_Latn tum_Latn tur_Latn twi_Latn tzm_Tfng
uig_Arab ukr_Cyrl umb_Latn urd_Arab uzn_Latn vec_Latn vie_Latn war_Latn wol_Latn xho_Latn ydd_Hebr
yor_Latn yue_Hant zho_Hans zho_Hant zsm_Latn zul_Latn
"""
TATOEBA = """
afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan
deu dsb dtp ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind
isl ita jav jpn kab kat kaz khm kor kur kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob
nov oci orv pam pes pms pol por ron rus slk slv spa sqi srp swe swg swh tam tat tel tgl tha tuk tur
tzl uig ukr urd uzb vie war wuu xho yid yue zsm
"""
TRAIN_MIX = """
ar az be bg bn ca cs da de el en eo es et eu fa fi fr gl he hi hr hu hy id it ja ka kk ko lt lv mk
mr ms nb nl no pl pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur vi zh
"""


@pytest.mark.parametrize("code", FLORES.split())
def test_a_flores_code_is_its_own_code(code: str) -> None:
    assert resolve_language(code).code == code


def test_the_112_tatoeba_files_are_112_languages() -> None:
    assert len({resolve_language(code).code for code in TATOEBA.split()}) == 112


def test_two_letter_codes_keep_their_iso1() -> None:
    codes = TRAIN_MIX.split()
    assert len(codes) == 57
    for code in codes:
        assert resolve_language(code).iso1 == {"no": "nb"}.get(code, code)


ALIASES = {
    "zho_Hans": "cmn zho zh chi zh_Hans zh_CN cmn-Hans Chinese",
    "zho_Hant": "zh-Hant zho_Hant zh_TW zho-TW zh_HK zh-Hant-HK cmn_Hant",
    "swh_Latn": "swh swa sw Swahili kiswahili",
    "arb_Arab": "arb ar ara ara-Arab ar_EG Arabic",
    "pes_Arab": "pes fas fa per Farsi fa_IR",
    "zsm_Latn": "zsm msa ms may",
    "nob_Latn": "nob no nb nb_NO nor Norwegian",
    "npi_Deva": "npi nep ne",
    "lvs_Latn": "lvs lav lv",
    "est_Latn": "ekk est et",
    "azj_Latn": "azj aze az",
    "als_Latn": "als sqi sq alb",
    "khk_Cyrl": "khk mon mn",
    "uzn_Latn": "uzn uzb uz",
    "pbt_Arab": "pbt pus ps",
    "gaz_Latn": "gaz orm om",
    "kmr_Latn": "kmr kur ku",
    "ydd_Hebr": "ydd yid yi ji",
    "plt_Latn": "plt mlg mg",
    "ory_Orya": "ory ori or",
    "quy_Latn": "quy que qu",
    "ayr_Latn": "ayr aym ay",
    "tgl_Latn": "tl fil tgl Filipino",
    "srp_Latn": "sr_Latn sr@latin sr-Latn-RS sr_RS@latin",
    "eng_Latn": "en en_GB eng-Latn en_US.UTF-8 English EN",
    "heb_Hebr": "iw",
    "ind_Latn": "in",
    "gle_Latn": "ga",
    "por_Latn": "pt_BR",
    "spa_Latn": "es-419",
    "cat_Latn": "ca_ES@valencia ca-valencia",
    "ckb_Arab": "ku-Arab",
    "pnb_Arab": "pa_PK",
    "prs_Arab": "fa_AF",
    "uzn_Cyrl": "uz@cyrillic",
    "kor_Hang": "kor-Kore",
    "ber_Tfng": "ber-Tfng",
    "max_Latn": "max",
    # Variants of BCP 47 decide nothing.
    "deu_Latn": "de-AT-1996 de-1901",
    "slv_Latn": "sl-rozaj-1994",
}


@pytest.mark.parametrize(
    ("given", "code"), [(name, code) for code, names in ALIASES.items() for name in names.split()]
)
def test_alias(given: str, code: str) -> None:
    assert resolve_language(given).code == resolve_language(f" {given} ").code == code


def test_a_macro_language_code_with_a_script_is_the_usual_member_in_it() -> None:
    assert resolve_language("ara_Latn").code == "arb_Latn"
    cyrillic = resolve_language("tuk-Cyrl")
    assert (cyrillic.code, cyrillic.iso1, cyrillic.name) == ("tuk_Cyrl", "tk", "Turkmen (Cyrl)")


@pytest.mark.parametrize(
    ("tag", "region"),
    [
        ("pt_BR", "BR"),
        ("es-419", "419"),
        ("zh_TW", "TW"),
        ("sr-Latn-RS", "RS"),
        ("de", None),
        ("de-AT-1996", "AT"),
    ],
)
def test_the_region_is_recorded(tag: str, region: str | None) -> None:
    assert parse(tag).region == region


@pytest.mark.parametrize(
    ("requested", "codes", "place"),
    [
        ("de-CH", ["de-DE", "de", "de-CH"], 2),
        ("de-CH", ["de-DE", "de"], 1),
        ("de-CH", ["de-DE", "en"], None),
        ("de", ["en", "de-DE", "de-CH"], 1),
    ],
)
def test_a_request_with_a_region_takes_that_region_or_none(requested, codes, place):
    found = [resolve_code(code) for code in codes]
    assert choose_code(resolve_code(requested), found) == place


def test_a_code_with_a_region_is_equal_to_the_code_and_written_with_the_region():
    code = resolve_code("de-CH")
    assert (code, written_code(code), written_tag(code)) == ("deu_Latn", "de-CH", "de-CH")
    assert pickle.loads(pickle.dumps(code)).region == parse(code).region == "CH"
    assert written_code(resolve_code("de")) == "deu_Latn"
    assert written_tag(resolve_code("zh-TW")) == "zh-Hant-TW"


@pytest.mark.parametrize(
    ("name", "offered"),
    [("us", "eng_Latn"), ("mx", "spa_Latn"), ("at", "deu_Latn"), ("qq", None)],
)
def test_the_code_of_a_country_names_its_language(name, offered):
    with pytest.raises(DataError, match=offered or "use a code") as caught:
        resolve_language(name)
    assert offered or "did you mean" not in str(caught.value)


COUNTRIES = {"cz": "ces_Latn", "cn": "zho_Hans", "dk": "dan_Latn", "gr": "ell_Grek"}
COUNTRIES |= {"ua": "ukr_Cyrl", "vn": "vie_Latn", "jp": "jpn_Jpan", "kz": "kaz_Cyrl"}
COUNTRIES |= {"zh-CHS": "zho_Hans", "zh-CHT": "zho_Hant"}


@pytest.mark.parametrize(("name", "code"), COUNTRIES.items())
def test_a_country_that_is_no_language_stands_for_its_language(name, code):
    assert resolve_language(name).code == code


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        *[("pt", "br", True), ("zh", "tw", True), ("sv", "se", True), ("en", "us", True)],
        *[("de", "de", True), ("en", "CA", True), ("de", "ch", True), ("en", "in", True)],
        *[("ca", "es", False), ("en", "ca", False), ("es", "sv", False), ("de", "en", False)],
        *[("de", "FR", False), ("br", "fr", False)],
    ],
)
def test_which_names_are_a_locale(first, second, expected):
    assert is_locale(first, second) is expected


def test_find_code_of_what_is_no_language_is_none() -> None:
    assert find_code("cmn-Hans") == "zho_Hans"
    assert find_code("default") is find_code("") is None


TYPOS = {
    "Germn": "deu_Latn",
    "eng_Latm": "eng_Latn",
    "Swahilli": "swh_Latn",
    "engLatn": "eng_Latn",
}


@pytest.mark.parametrize(("typo", "offered"), TYPOS.items())
def test_an_unknown_language_names_the_nearest(typo: str, offered: str) -> None:
    with pytest.raises(DataError, match=f"language '{typo}'; .*{offered}"):
        resolve_language(typo)


@pytest.mark.parametrize(
    "name",
    ["", "xx", "qqqqqq", "pt_BRX", "en-US-x-foo", "de-19x", "de-a996b6c7d8", "de-1"],
)
def test_nonsense_is_an_error(name: str) -> None:
    with pytest.raises(DataError, match="unknown language"):
        resolve_language(name)


def test_the_table_is_consistent() -> None:
    languages = known()
    codes = {language.code for language in languages}
    assert len(codes) == len({language.name for language in languages})
    for language in languages:
        assert language.code == f"{language.iso3}_{language.script}"
        assert resolve_language(language.code) is language
        assert resolve_language(language.name) is language or len(language.name) <= 3
        assert language.is_latin == (language.script == "Latn")
        assert language.script in scripts()
    iso1 = [language.iso1 for language in languages if language.iso1]
    assert all(len(code) == 2 for code in iso1)
    assert {resolve_language(code).iso1 for code in iso1} == set(iso1)


FAMILIES = {
    "Abkhaz-Adyge", "Afro-Asiatic", "Algic", "Artificial Language", "Athabaskan-Eyak-Tlingit",
    "Atlantic-Congo", "Austroasiatic", "Austronesian", "Aymaran", "Basque", "Chukotko-Kamchatkan",
    "Dravidian", "Eskimo-Aleut", "Hmong-Mien", "Indo-European: Albanian", "Indo-European: Armenian",
    "Indo-European: Baltic", "Indo-European: Celtic", "Indo-European: Germanic",
    "Indo-European: Greek", "Indo-European:"
                                                                                " Indo-Aryan",
    "Indo-European: Iranian", "Indo-European: Italic", "Indo-European: Slavic", "Iroquoian",
    "Japonic", "Kartvelian", "Koreanic", "Mande", "Mayan", "Mongolic-Khitan", "Nakh-Daghestanian",
    "Nilotic", "Pidgin", "Quechuan", "Saharan", "Sino-Tibetan", "Songhay", "Sumerian",
    "Ta-Ne-Omotic", "Tai-Kadai", "Tupian", "Turkic", "Uralic", "Uto-Aztecan",
}  # fmt: skip


def test_every_language_has_a_family_and_its_scripts_have_the_same() -> None:
    families: dict[str, set[str]] = {}
    for language in known():
        families.setdefault(language.iso3, set()).add(language.family)
    assert {len(found) for found in families.values()} == {1}
    assert {family for found in families.values() for family in found} <= FAMILIES


FAMILY_OF = {
    "Hindi": "Indo-European: Indo-Aryan",
    "pes": "Indo-European: Iranian",
    "lv": "Indo-European: Baltic",
    "hr": "Indo-European: Slavic",
    "la": "Indo-European: Italic",
    "eu": "Basque",
    "vi": "Austroasiatic",
    "th": "Tai-Kadai",
    "sw": "Atlantic-Congo",
    "ha": "Afro-Asiatic",
    "hu": "Uralic",
    "ta": "Dravidian",
    "zh-Latn": "Sino-Tibetan",
    "eo": "Artificial Language",
    "nqo": "Mande",
    "yue": "Sino-Tibetan",
}


@pytest.mark.parametrize(("language", "family"), FAMILY_OF.items())
def test_families_one_by_one(language: str, family: str) -> None:
    assert resolve_language(language).family == family


def test_families_are_glottologs() -> None:
    """Compare with the classification of Glottolog in mteb."""
    mteb = pytest.importorskip("mteb")
    classified = json.loads(
        (Path(mteb.__file__).parent / "languages" / "language_family.json").read_text("utf-8")
    )
    theirs = {"Greek": "Graeco-Phrygian", "Armenian": "Armenic"}
    theirs |= dict.fromkeys(("Slavic", "Baltic"), "Balto-Slavic")
    checked = 0
    for language in known():
        lineage = [*classified.get(language.iso3, {}).values()]
        top, _, branch = language.family.partition(": ")
        if not lineage or language.iso3 == "nqo":  # Glottolog counts written Manding as artificial
            continue
        checked += 1
        assert lineage[0] == top, language
        assert not branch or {branch, theirs.get(branch)} & set(lineage), language
    assert checked > 300
