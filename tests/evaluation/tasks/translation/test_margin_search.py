from __future__ import annotations

from interlingua.evaluation.tasks.translation.xsim import XSim


def test_wrong_neighbors_come_with_their_margins(aligned_folder, number_encoder):
    result = XSim(languages=["hi"]).evaluate(number_encoder, aligned_folder)
    first, second = result.examples["hin_Deva-eng_Latn"]
    assert {first.item, second.item} == {0, 1}
    assert first.retrieved_score > first.expected_score
    assert XSim(languages=["hi"], examples=0).evaluate(number_encoder, aligned_folder).examples == {
        "hin_Deva-eng_Latn": ()
    }
