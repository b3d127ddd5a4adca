"""The simulated device, for all tests of this folder."""

from tests.accelerator.simulated import cuda

__all__ = ["cuda"]
