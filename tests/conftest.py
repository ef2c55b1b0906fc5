"""Settings of all tests, and a check of every public mechanism's annotations.

Hypothesis draws the same examples in every run, and no test fails because the machine is slow.

The second part holds every public mechanism to its annotations: shapes and dtypes of arguments and
results. The mechanisms convert lists and other real dtypes and refuse what does not fit with a
`ValueError` of their own. So arguments are converted as a mechanism would convert them, the call is
checked by jaxtyping and beartype, and a call that breaks its annotations must be one that the
mechanism refuses.
"""

import functools
import inspect
from types import FunctionType

import numpy as np
from beartype import beartype
from hypothesis import settings
from jaxtyping import TypeCheckError, jaxtyped

from archcards import mechanisms

settings.register_profile("archcards", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("archcards")


def _converted(value, annotation):
    """The argument as the mechanism would see it."""
    text = str(annotation)
    if "ndarray" in text and "Callable" not in text and not isinstance(value, str):
        try:
            array = np.asarray(value)
        except (ValueError, TypeError):
            return value
        if array.dtype.kind in "iuf" and "Float[" in text:
            return array.astype(np.float64)
        return array if array.dtype.kind in "biuf" else value
    if isinstance(value, np.ndarray) and "Sequence" in text:
        return value.tolist()
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, int) and "float" in text and not isinstance(value, bool):
        return float(value)
    return value


def _held_to_its_annotations(function):
    signature = inspect.signature(function)

    @functools.cache
    def checked():  # made when it is first called: most runs of tests call few
        return jaxtyped(function, typechecker=beartype)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = _converted(value, signature.parameters[name].annotation)
        try:
            return checked()(*bound.args, **bound.kwargs)
        except TypeCheckError as broken:
            function(*args, **kwargs)
            raise AssertionError(
                f"{function.__name__} took or gave what its annotations exclude"
            ) from broken

    return call


for _name, _object in list(vars(mechanisms).items()):
    if isinstance(_object, FunctionType) and not _name.startswith("_"):
        setattr(mechanisms, _name, _held_to_its_annotations(_object))
