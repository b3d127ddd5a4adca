from __future__ import annotations

import itertools
import random

from interlingua.corpus.entities import Gazetteer

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
    assert [name.text for name in gazetteer.find("Paris is not Rome")] == [
        "Paris",
        "Rome",
    ]  # the first word too
    assert (
        gazetteer.find("People and Today and the Dog") == []
    )  # only at a start; more often written small


def test_a_name_is_put_for_one_of_its_kind():
    gazetteer = Gazetteer(ENGLISH, "en")
    assert others(gazetteer, "So Anna Berg lost.") == {"So Karl Lund lost.", "So Maria Holm lost."}
    assert others(gazetteer, "Only NASA knows.") == {"Only ESA knows."}
    assert others(gazetteer, "Rome, not Oslo.") == {"Paris, not Oslo.", "Rome, not Paris."}
    assert others(gazetteer, "Nobody knows.") == set()


def test_endings_are_kept_where_there_are_enough():
    cities = [
        "в Москве",
        "в Риге",
        "в Вене",
        "в Праге",
        "в Женеве",
        "в Лондоне",
        "в Париж",
        "в Рим",
        "в Полтаве",
    ]
    gazetteer = Gazetteer([f"мы были {city} тогда" for city in cities], "ru")
    assert (
        others(gazetteer, "мы были в Риге") == {"мы были в Праге"}
        or len(others(gazetteer, "мы были в Риге")) > 1
    )
    exact = Gazetteer(
        [f"мы были в {city} тогда" for city in ("Аве", "Бве", "Вве", "Гве", "Две", "Рим")], "ru"
    )
    assert "в Рим" not in {form[-5:] for form in others(exact, "мы были в Аве")}
    loose = Gazetteer([f"мы были в {city} тогда" for city in ("Аве", "Бве", "Рим")], "ru")
    assert {form.split()[-1] for form in others(loose, "мы были в Аве")} == {"Бве", "Рим"}


def test_scripts_without_case():
    japanese = Gazetteer(
        [
            "昨日ジョン・スミスがGoogleで話した。",
            "アンナ・ベルクはNASAを訪れた。",
            "彼はSonyを買った。",
        ],
        "ja",
    )
    assert others(japanese, "ジョン・スミスは歌う。") == {"アンナ・ベルクは歌う。"}
    assert others(japanese, "Googleは大きい。") == {"Sonyは大きい。"}
    chinese = Gazetteer(["他读《红楼梦》。", "她看《西游记》。"], "zh")
    assert others(chinese, "《红楼梦》很长。") == {"《西游记》很长。"}
    assert others(Gazetteer(["هذا بيت كبير"], "ar"), "هذا بيت كبير") == set()
