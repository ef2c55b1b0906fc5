"""What follows the last layer of a model that predicts no tokens: classes, or a span's ends."""

from ..architecture import Tensor
from ..fields import Fields
from ._blocks import linear

__all__ = [
    "CLASSES",
    "CLASSIFIERS",
    "EACH_TOKEN",
    "architecture_class",
    "classes_of",
    "classified",
    "kind_of",
    "labels",
    "read_out",
    "two_layers",
]

CLASSES = 2
"""Classes where a file names none, as the transformers library has it."""

EACH_TOKEN = ("ForTokenClassification", "ForQuestionAnswering")
CLASSIFIERS = ("ForSequenceClassification", *EACH_TOKEN)
"""How the library's names of classifiers end; of them, those that read each token."""


def architecture_class(fields: Fields) -> str | None:
    """The class named in `architectures`, if one is."""
    names = fields.items("architectures")
    if not names:
        return None
    if not all(isinstance(name, str) for name in names):
        raise fields.refuse("architectures", "a list of class names")
    return names[0]


def kind_of(fields: Fields, prefix: str, *kinds: str) -> tuple[str, str]:
    """The class, a bare model unless told, and what follows the family's name in it: one of `kinds`."""
    name = architecture_class(fields) or f"{prefix}Model"
    kind = name.removeprefix(prefix)
    if kind == name or kind not in kinds:
        raise fields.refuse("architectures", f"{prefix} with one of {', '.join(kinds)}")
    return name, kind


def labels(fields: Fields) -> int | None:
    """How many classes `id2label` names, or `num_labels` says; None where the file is silent."""
    names = fields.raw("id2label")
    number = fields.maybe("num_labels")
    if names is not None:
        if not isinstance(names, dict) or not names:
            raise fields.refuse("id2label", "an object with a name for each class")
        if number is not None and number != len(names):
            raise fields.refuse("num_labels", f"{len(names)}, as many as id2label names")
        return len(names)
    return number


def classified(fields: Fields, width: int) -> tuple[Tensor, ...]:
    """The classifier on a decoder of this width; none where the file names no such class.

    A sequence's classes are read from its last token without a bias, a token's classes and the
    two ends of a span from each token with one.
    """
    name = architecture_class(fields) or ""
    if name.endswith("ForSequenceClassification"):
        found, count = "classes, read from the last token,", labels(fields) or CLASSES
        head = linear("classifier", width, count, per="sequence")
    elif name.endswith("ForTokenClassification"):
        found, count = "classes of each token", labels(fields) or CLASSES
        head = linear("classifier", width, count, True)
    elif name.endswith("ForQuestionAnswering"):
        found, count = "ends of a span", 2
        head = linear("classifier", width, count, True)
    else:
        return ()
    fields.note(f"{name}: {count} {found} in place of an output head")
    return head


def classes_of(
    fields: Fields, name: str, width: int, *, per: str = "sequence"
) -> tuple[Tensor, ...]:
    """The last matrix of an encoder's classifier, with its bias."""
    count = labels(fields) or CLASSES
    fields.note(f"{name}: a classifier of {count} classes, no output head")
    return linear("classifier", width, count, True, per=per)


def two_layers(fields: Fields, name: str, width: int) -> tuple[Tensor, ...]:
    """A classifier of sequences with a hidden layer of its own."""
    inside = linear("classifier in", width, width, True, per="sequence")
    return inside + classes_of(fields, name, width)


def read_out(fields: Fields, width: int) -> tuple[Tensor, ...]:
    """The classifier on the decoder of an encoder–decoder; none where the class is another."""
    name = architecture_class(fields) or ""
    if name.endswith("ForSequenceClassification"):
        return two_layers(fields, name, width)
    if name.endswith("ForQuestionAnswering"):
        return classes_of(fields, name, width, per="token")
    return ()
