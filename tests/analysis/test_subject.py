from __future__ import annotations

import pytest

from interlingua.analysis.subject import needs_states
from interlingua.errors import ConfigError
from tests.analysis.conftest import fixed_subject, random_vectors


def test_hidden_states_are_read_from_ours_alone(subject):
    assert subject.states_of("x") is subject.encoder
    assert needs_states(subject) is None
    foreign = fixed_subject(random_vectors(3, 4))
    assert needs_states(foreign) == "its hidden states cannot be read"
    with pytest.raises(
        ConfigError,
        match=r"x .*hidden states, .*test",
    ):
        foreign.states_of("x")
