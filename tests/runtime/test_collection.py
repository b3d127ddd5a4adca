import gc

import pytest

from interlingua.runtime.collection import no_collection


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_off_for_the_block_and_then_as_before(on):
    was_on = gc.isenabled()
    try:
        (gc.enable if on else gc.disable)()
        with pytest.raises(KeyError), no_collection():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == on
        assert not no_collection()(gc.isenabled)()
        assert gc.isenabled() == on
    finally:
        (gc.enable if was_on else gc.disable)()
