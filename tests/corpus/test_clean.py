import time

import pytest

from interlingua.corpus import clean
from interlingua.corpus.clean import RULES, CleanConfig, Cleaner
from interlingua.corpus.formats import TextPair
from interlingua.errors import ConfigError, DataError


def pair(source, target, source_language="deu_Latn", target_language="eng_Latn", score=None):
    return TextPair(source, target, source_language, target_language, score)


GOOD = pair("Das ist ein Haus.", "This is a house.")
LONG = "The committee will meet again on Thursday to discuss the new building."

BROKEN = {
    "empty": [pair("", "Nothing here"), pair(" \u200b\t", "Nothing here"), pair("", "")],
    "no_letters": [pair("1984", "1984"), pair("...", "so it goes"), pair("42", "forty-two")],
    "identical": [pair("Made in Germany", "made in  Germany"), pair("“Bacon”", '"bacon"')],
    "too_short": [pair("ja", "yes")],
    "too_long": [pair("Wort " * 300, "word " * 300), pair("Wort " * 200 + "W", "word " * 199)],
    "length_ratio": [pair("Nein.", LONG), pair(LONG, "Nein.")],
    "wrong_script": [
        pair("Это по-русски.", "This is in Russian."),
        pair("This is English", "这是英文", "ara", "zho_Hans"),
        pair("你好吗我的朋友", "hello my friend", "jpn_Jpan", "rus_Cyrl"),
    ],
}


@pytest.mark.parametrize(
    ("rule", "broken"), [(rule, p) for rule, pairs in BROKEN.items() for p in pairs]
)
def test_each_rule_drops_and_counts(rule, broken):
    cleaner = Cleaner(CleanConfig(min_characters=3))
    assert cleaner(broken) is None
    assert cleaner.counts == {name: int(name == rule) for name in RULES}
    assert (cleaner.seen, cleaner.kept) == (1, 0)


@pytest.mark.parametrize(
    "good",
    [
        GOOD,
        pair("Nein.", "No, not at all."),
        pair(
            "我们星期四再讨论新建筑。",
            "We will talk about the new building again on Thursday.",
            "zho_Hans",
        ),
        pair(
            "目前還沒有人知道為什麼。", "So far no one knows why it is that way at all.", "yue_Hant"
        ),
        pair("ヘルプ", "Help", "jpn_Jpan"),
        pair("Apache HTTP サーバー", "Apache HTTP server", "jpn_Jpan"),
        pair("Zdravo, svete!", "Hello, world!", "srp_Cyrl"),
        pair("Wort " * 199 + "Worte", "word " * 199 + "words"),
        pair("DNA", "ДНК", "eng_Latn", "rus_Cyrl"),
    ],
)
def test_good_pairs_stay(good):
    cleaner = Cleaner()
    assert cleaner(good) == good
    assert (cleaner.seen, cleaner.kept) == (1, 1)


def test_texts_are_normalized_and_the_rest_is_kept():
    messy = pair(" „Ja“  —  sagte er… ", "“Yes” — he said…", score=0.75)
    assert Cleaner()(messy) == pair('"Ja" – sagte er...', '"Yes" – he said...', score=0.75)


def test_markup_is_taken_away_before_the_rules_look():
    cleaner = Cleaner(CleanConfig(markup="strip"))
    assert cleaner(pair("%(count)s <b>Dateien</b>", "%(count)s <b>files</b>")) == pair(
        "Dateien", "files"
    )
    assert cleaner(pair("%(count)s", "%(count)s files")) is None
    assert cleaner.counts["empty"] == 1


def test_a_pair_counts_under_the_first_rule_only():
    cleaner = Cleaner(CleanConfig(min_characters=5))
    cleaner(pair("", "Привет всем людям на свете, и даже больше, чем всем"))
    assert {rule: n for rule, n in cleaner.counts.items() if n} == {"empty": 1}


def test_chunks_and_neighbors_change_nothing(monkeypatch):
    pairs = [
        GOOD,
        *(p for pairs in BROKEN.values() for p in pairs),
        GOOD._replace(source_language="nld"),
    ] * 3
    whole, single, stream = (Cleaner(CleanConfig(min_characters=3)) for _ in range(3))
    expected = whole.clean_many(pairs)
    assert [p for p in map(single, pairs) if p] == expected
    monkeypatch.setattr(clean, "CHUNK", 4)
    assert list(stream.clean(iter(pairs))) == expected
    assert whole.counts == single.counts == stream.counts
    assert whole.seen == len(pairs)
    assert whole.kept == len(expected) == 6
    assert whole.clean_many([]) == []


@pytest.mark.parametrize(
    ("off", "broken"),
    [
        ({"max_length_ratio": 0}, BROKEN["length_ratio"][0]),
        ({"min_script_share": 0}, BROKEN["wrong_script"][0]),
        ({"drop_identical": False}, BROKEN["identical"][0]),
        ({"max_characters": 10_000}, BROKEN["too_long"][0]),
    ],
)
def test_rules_can_be_switched_off(off, broken):
    assert Cleaner()(broken) is None
    assert Cleaner(CleanConfig(**off))(broken) is not None


def test_the_length_ratio_is_the_documented_one():
    # (9 + 15) : (57 + 15) = 1 : 3 exactly, which is still allowed
    assert Cleaner()(pair("a" * 9, "b" * 57)) is not None
    assert Cleaner()(pair("a" * 9, "b" * 58)) is None
    # 19 Chinese characters are worth 57 Latin ones
    assert Cleaner()(pair("字" * 19, "b" * 9, "zho_Hans")) is not None
    assert Cleaner()(pair("字" * 20, "b" * 9, "zho_Hans")) is None


def test_the_script_share_is_the_documented_one():
    assert Cleaner()(pair("ЖЖaaaaaa", "b" * 8, "rus_Cyrl")) is not None  # 2 of 8
    assert Cleaner()(pair("ЖЖaaaaaaa", "b" * 9, "rus_Cyrl")) is None  # 2 of 9
    assert Cleaner()(pair("字aaaaaaaaa", "b" * 9, "zho_Hans")) is not None  # 3 of 12


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_script_share": 1.5},
        {"min_language_confidence": -0.1},
        {"min_characters": 10, "max_characters": 5},
        {"max_length_ratio": 0.5},
        {"length_slack": -1},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError, match="choose"):
        CleanConfig(**wrong)


def test_an_unknown_language_is_an_error():
    with pytest.raises(DataError, match="klingonese"):
        Cleaner()(pair("a", "b", "klingonese"))


def test_identified_languages():
    pytest.importorskip("py3langid")
    cleaner = Cleaner(CleanConfig(identify_languages=True))
    french = pair(
        "Je ne sais pas pourquoi il est parti si tôt ce matin.",
        "I do not know why he left so early.",
    )
    assert cleaner(french) is None
    assert cleaner.counts["wrong_language"] == 1
    assert cleaner(french._replace(source_language="fra_Latn")) is not None
    assert cleaner(pair("Oui, bien.", "Yes, fine.")) is not None  # too short to tell
    assert cleaner.kept == 2


def test_speed_is_of_the_right_order():
    """Measured: about 150,000 pairs a second and core.

    A third of that passes, so that a busy machine does.
    """
    german, english = (
        "„Das Komitee trifft sich erneut am Donnerstag, den {}.“",
        "“The committee meets again on the {}th.”",
    )
    pairs = [pair(german.format(i), english.format(i)) for i in range(20_000)]
    cleaner, seconds = Cleaner(), []
    for _ in range(3):
        start = time.process_time()
        assert len(cleaner.clean_many(pairs)) == len(pairs)
        seconds.append(time.process_time() - start)
    assert len(pairs) / min(seconds) > 50_000
