from __future__ import annotations

import itertools
import random

from interlingua.corpus.negatives.entities import Gazetteer

ENGLISH = [
    "Yesterday we met Anna Berg in Paris and left.",
    "Then Karl Lund drove from Paris to Rome with the dog.",
    "People said that NASA paid, and so did ESA in the end.",
    "Today the house of Maria Holm is in Oslo, they said.",
    "They like the Dog, but a dog is a dog.",
    "NEWS FROM PARIS And Rome Today",
]


def others(gazetteer, text, count=200):
    return set(itertools.islice(gazetteer.other_names(text, random.Random(1)), count))


def test_names_are_capitalized_inside_a_sentence():
    gazetteer = Gazetteer(ENGLISH, "en")
    assert [name.text for name in gazetteer.find(ENGLISH[0])] == ["Anna Berg", "Paris"]
    # The first word too.
    assert [name.text for name in gazetteer.find("Paris is not Rome")] == ["Paris", "Rome"]
    # Only at a start, or more often written small.
    assert gazetteer.find("People and Today and the Dog") == []


def test_a_name_is_put_for_one_of_its_kind():
    gazetteer = Gazetteer(ENGLISH, "en")
    assert others(gazetteer, "So Anna Berg lost.") == {"So Karl Lund lost.", "So Maria Holm lost."}
    assert others(gazetteer, "Only NASA knows.") == {"Only ESA knows."}
    assert others(gazetteer, "Rome, not Oslo.") == {"Paris, not Oslo.", "Rome, not Paris."}
    assert others(gazetteer, "Nobody knows.") == set()


def test_endings_are_kept_where_there_are_enough():
    def places(names):
        cities = Gazetteer([f"мы были в {city} тогда" for city in names.split()], "ru")
        return {form.split()[-1] for form in others(cities, "мы были в Аве")}

    assert places("Аве Бве Вве Гве Две Рим") == {"Бве", "Вве", "Гве", "Две"}
    assert places("Аве Бве Рим") == {"Бве", "Рим"}


def test_scripts_without_case():
    texts = (
        "昨日ジョン・スミスがGoogleで話した。",
        "アンナ・ベルクはNASAを訪れた。",
        "彼はSonyを買った。",
    )
    japanese = Gazetteer(texts, "ja")
    assert others(japanese, "ジョン・スミスは歌う。") == {"アンナ・ベルクは歌う。"}
    assert others(japanese, "Googleは大きい。") == {"Sonyは大きい。"}
    chinese = Gazetteer(["他读《红楼梦》。", "她看《西游记》。"], "zh")
    assert others(chinese, "《红楼梦》很长。") == {"《西游记》很长。"}
    assert others(Gazetteer(["هذا بيت كبير"], "ar"), "هذا بيت كبير") == set()
