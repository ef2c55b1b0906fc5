"""What an architecture computes: reference implementations in NumPy float64, written to be read."""

from .attention import *  # noqa: F403
from .cache import *  # noqa: F403
from .delta import *  # noqa: F403
from .experts import *  # noqa: F403
from .hyper import *  # noqa: F403
from .latent import *  # noqa: F403
from .linear import *  # noqa: F403
from .mamba import *  # noqa: F403
from .masks import *  # noqa: F403
from .norms import *  # noqa: F403
from .online_softmax import *  # noqa: F403
from .patches import *  # noqa: F403
from .rope import *  # noqa: F403
from .scaling import *  # noqa: F403
from .sparse import *  # noqa: F403
from .speculative import *  # noqa: F403
from .ssm import *  # noqa: F403

# Functions and classes. The modules beside them, some of which bear a function's name, are not.
__all__ = sorted(
    name
    for name, value in globals().items()
    if getattr(value, "__module__", "").startswith(f"{__name__}.")
)
