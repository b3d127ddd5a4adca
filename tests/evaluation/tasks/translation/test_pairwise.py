from __future__ import annotations

from interlingua.evaluation.tasks.translation.flores import FloresP1


def test_both_directions_of_every_pair(aligned_folder, number_encoder):
    result = FloresP1().evaluate(number_encoder, aligned_folder)
    assert {subset.name: subset.scores["accuracy"] for subset in result.subsets} == {
        "eng_Latn-hin_Deva": 0.75,
        "hin_Deva-eng_Latn": 0.75,
        "eng_Latn-ita_Latn": 1.0,
        "ita_Latn-eng_Latn": 1.0,
        "hin_Deva-ita_Latn": 0.75,
        "ita_Latn-hin_Deva": 0.75,
    }
    (first, _) = result.examples["hin_Deva-ita_Latn"]
    assert first.languages == ("hin_Deva", "ita_Latn")
    assert first.query.startswith("संख्या")
    assert result.examples["eng_Latn-ita_Latn"] == ()
