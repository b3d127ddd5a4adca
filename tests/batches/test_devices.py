import torch

from interlingua.batches.devices import on_device

CPU = torch.device("cpu")


def test_tensor_that_is_there_stays_itself():
    x = torch.arange(3)
    assert on_device(x, CPU) is x


def test_tensor_elsewhere_is_copied():
    x = torch.arange(3)
    assert on_device(x, torch.device("meta")).device.type == "meta"
