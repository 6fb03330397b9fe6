"""What a cell can change for later ones beside their names: random numbers, how things are shown.

The kernel that runs a solved notebook imports this, so it imports nothing of its own.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
from typing import Any


def state() -> str:
    """A digest of what later cells draw random numbers from, and of how they print and draw."""
    parts: list[Any] = [random.getstate(), os.getcwd(), sorted(os.environ.items())]
    if np := sys.modules.get("numpy"):
        kind, keys, *rest = np.random.get_state()
        parts += [kind, keys.tobytes(), rest, np.get_printoptions(), np.geterr()]
    if torch := sys.modules.get("torch"):
        parts += [torch.get_rng_state().numpy().tobytes(), torch.get_default_dtype()]
        parts += [torch.is_grad_enabled(), torch.get_num_threads()]
    if plt := sys.modules.get("matplotlib.pyplot"):
        # As they lie in the dictionary: asking for the backend would choose one.
        parts += [sorted(dict.items(plt.rcParams)), plt.get_fignums()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()
