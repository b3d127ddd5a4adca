"""The simulated device, for all tests of this folder."""

from torch.utils._device import _device_constructors

from tests.accelerator.simulated import cuda

__all__ = ["cuda"]
# torch keeps what it finds here at the first call, which must not be the functions that the fixture
# puts in their place
_device_constructors()
