"""The array libraries that a reader's function may be written in: what it is given, and what it gives.

Whatever the library, the adapter sees arrays that `einops` can rearrange, so that PyTorch's automatic
differentiation reaches through a change of layout.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

__all__ = ["DTYPES", "LIBRARIES", "NumPy", "Torch", "is_array", "to_numpy"]

DTYPES = ("float64", "float32", "bfloat16")


class NumPy:
    """Arrays as they are; NumPy has no bfloat16, and float32 stands in for it."""

    def __init__(self, dtype: str):
        self._real = np.float64 if dtype == "float64" else np.float32

    def given(self, array: np.ndarray) -> np.ndarray:
        """A published array in the library's own type."""
        return array.astype(self._real) if array.dtype.kind == "f" else array

    def own(self, array: np.ndarray) -> np.ndarray:
        """The same numbers in one piece of memory that the function may write to."""
        return np.array(array, order="C")

    def function(self, function: Callable) -> Callable:
        """What a case gives as a function, such as an expert, for the library's arrays."""
        return function

    def stack(self, arrays: Sequence, axis: int):
        return np.stack(arrays, axis)

    def returned(self, result):
        """What a function returned, as something that can be rearranged."""
        return to_numpy(result)


class Torch(NumPy):
    """Tensors of the dtype, bfloat16 too."""

    def __init__(self, dtype: str):
        import torch

        self._torch, self._real = torch, getattr(torch, dtype)

    def given(self, array):
        tensor = self._torch.from_numpy(np.array(array, order="C"))
        return tensor.to(self._real) if array.dtype.kind == "f" else tensor

    def function(self, function):
        torch, name = self._torch, function.__name__
        if name == "rms_norm":
            return lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-6)
        if name == "cbrt":  # which PyTorch does not have
            return lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3)
        return getattr(torch, name)

    def own(self, array):
        return array.clone(memory_format=self._torch.contiguous_format)

    def stack(self, arrays, axis):
        if not all(map(self._torch.is_tensor, arrays)):
            return super().stack([to_numpy(array) for array in arrays], axis)
        return self._torch.stack(list(arrays), axis)

    def returned(self, result):
        numbers = isinstance(result, list) and bool(result) and all(np.ndim(x) == 0 for x in result)
        return to_numpy(result) if numbers else result

    def differentiated(self, results: Mapping, weights: Mapping, variables: Mapping) -> dict | None:
        r"""The gradient of $\sum_y \langle g_y, y \rangle$ with respect to each variable.

        Args:
            results: Tensors $y$ by name.
            weights: An array $g_y$ for each.
            variables: What they were computed from.

        Returns:
            The gradients by the variables' names, zeros where nothing depends on one; nothing if no
            result depends on any.
        """
        total = [
            (self.given(weights[name]).to(y.dtype) * y).sum()
            for name, y in results.items()
            if self._torch.is_tensor(y) and y.requires_grad
        ]
        if not total:
            return None
        found = self._torch.autograd.grad(
            sum(total), list(variables.values()), allow_unused=True, materialize_grads=True
        )
        return dict(zip(variables, found, strict=True))


LIBRARIES = {"numpy": NumPy, "torch": Torch}


def is_array(value) -> bool:
    """Whether this is an array, of whichever library."""
    return isinstance(value, np.ndarray) or hasattr(value, "detach")


def to_numpy(result):
    """The same with NumPy arrays for tensors; no need to know which library they come from."""
    if hasattr(result, "detach"):
        result = result.detach().cpu()
        return np.asarray((result.double() if result.is_floating_point() else result).numpy())
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*map(to_numpy, result))
    if isinstance(result, tuple):
        return tuple(map(to_numpy, result))
    if isinstance(result, list) and any(hasattr(part, "detach") for part in result):
        return [to_numpy(part) for part in result]
    return result
