"""Passages and questions as the model and its map want them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.affine_maps import fit_language_map, language_statistics
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.indexed_model import IndexedModel
from interlingua.retrieval.passage_files import Passage
from tests.encoder.conftest import SENTENCES, tiny_vocabulary

PROMPTS = {"query": "ask: ", "passage": "tell: "}


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(0)
    vocabulary = tiny_vocabulary(frame=True)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    made = Encoder.from_scratch(config, vocabulary)
    made.settings.prompts.update(PROMPTS)
    return made


def language_map(encoder, method):
    vectors = encoder.encode(SENTENCES, prompt="")
    statistics = language_statistics([("deu_Latn", vectors[:4]), ("eng_Latn", vectors[4:])])
    return fit_language_map(statistics, method)


def same_model(model):
    """Build a model with the prompts of another, like an index."""
    prompts = {"prompt": model.passage_prompt, "question_prompt": model.question_prompt}
    return IndexedModel(model.encoder, "m", **prompts)


def test_each_side_gets_its_own_prompt(encoder):
    model = IndexedModel(encoder, "m")
    passage = Passage("a", "sits on the mat", "The cat")
    texts = ["tell: The cat sits on the mat", "ask: cat?"]
    found = [model.embed_passages([passage])[0], model.embed_question("cat?")]
    np.testing.assert_allclose(found, encoder.encode(texts, prompt=""), atol=1e-6)
    assert (model.settings.passage_prompt, model.settings.question_prompt) == ("tell: ", "ask: ")


def test_prompts_that_are_given_replace_the_models_own(encoder):
    model = IndexedModel(encoder, "m", prompt="", question_prompt="query")
    assert (model.passage_prompt, model.question_prompt) == ("", "ask: ")
    assert same_model(model).settings == model.settings


def test_a_prompt_that_ends_in_a_letter_is_found_again(encoder):
    prompts = {"query": "ask for", "passage": "tell"}
    settings = dataclasses.replace(encoder.settings, prompts=prompts)
    again = same_model(IndexedModel(Encoder(encoder.backbone, encoder.vocabulary, settings), "m"))
    assert (again.passage_prompt, again.question_prompt) == ("tell", "ask for")


def test_a_map_moves_passages_and_questions_alike(encoder):
    made = language_map(encoder, "project")
    model = IndexedModel(encoder, "m", prompt="", question_prompt="", language_map=made)
    expected = made.apply(encoder.encode(SENTENCES, prompt=""))
    found = model.embed_passages([Passage(str(row), text) for row, text in enumerate(SENTENCES)])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(model.embed_question(SENTENCES[0]), expected[0], atol=1e-5)
    other = IndexedModel(encoder, "m", language_map=language_map(encoder, "center"))
    assert "" != model.settings.map_digest != other.settings.map_digest


def test_a_shift_needs_and_uses_the_language(encoder):
    made = language_map(encoder, "shift")
    model = IndexedModel(encoder, "m", prompt="", question_prompt="", language_map=made)
    passages = [Passage("a", "one", language="deu_Latn"), Passage("b", "two", language="eng_Latn")]
    vectors = encoder.encode(["one", "two"], prompt="")
    expected = made.apply(vectors, languages=["deu_Latn", "eng_Latn"])
    np.testing.assert_allclose(model.embed_passages(passages), expected, atol=1e-5)
    np.testing.assert_allclose(model.embed_question("two", "en"), expected[1], atol=1e-5)
    with pytest.raises(DataError, match="--language"):
        model.embed_passages([Passage("c", "three")])
    with pytest.raises(ConfigError, match="--language"):
        model.embed_question("three")


@pytest.mark.parametrize("options", [{"dtype": "float13"}, {"prompt": "no such name"}])
def test_unknown_options_are_refused(encoder, options):
    with pytest.raises(ConfigError):
        IndexedModel(encoder, "m", **options)


def test_a_map_of_another_width_is_refused(encoder):
    rng = np.random.default_rng(0)
    statistics = language_statistics([(code, rng.normal(size=(5, 4))) for code in ("a", "b")])
    made = fit_language_map(statistics)
    with pytest.raises(ConfigError, match="vectors of 4 dimensions"):
        IndexedModel(encoder, "m", language_map=made)
