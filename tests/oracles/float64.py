"""PyTorch code that casts to float32, run in float64.

Almost every reference implementation computes in float32 inside, whatever it is given. While this
mode is on, every cast to float32 is one to float64, so that what is compared is the mathematics and
not the rounding; nothing in the other packages is changed.
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["float64"]


class _Casts(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), options=None):
        options = {name: _wide(value) for name, value in (options or {}).items()}
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(_wide, arguments), **options)


def _wide(value):
    return torch.float64 if value is torch.float32 else value


@contextlib.contextmanager
def float64(gradients=False):
    """Compute in float64, whatever the code inside asks for."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Casts(), torch.set_grad_enabled(gradients):
            yield
    finally:
        torch.set_default_dtype(before)
