import torch

from interlingua.runtime.devices import gather_rows, on_device

CPU = torch.device("cpu")


def test_tensor_that_is_there_stays_itself():
    x = torch.arange(3)
    assert on_device(x, CPU) is x


def test_tensor_elsewhere_is_copied():
    x = torch.arange(3)
    assert on_device(x, torch.device("meta")).device.type == "meta"


def test_rows_are_gathered_with_their_gradient():
    x = torch.arange(6.0).view(3, 2).requires_grad_()
    found = gather_rows(x, torch.tensor([2, 0]))
    found.sum().backward()
    assert found.tolist() == [[4.0, 5.0], [0.0, 1.0]]
    assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
