"""tfcomp: compositional generalization by forced rendering of latents.

A TensorFlow/Keras implementation of "Compositional Generalization via
Forced Rendering of Disentangled Latents" (ICML 2025). Importing the package
is cheap: TensorFlow is imported only by the modules that compute with it.
"""

from __future__ import annotations

import pkgutil
from typing import Any

__version__ = "0.1.0"

_LATER = {"FactorTable": "tfcomp.datasets.factor_table:FactorTable"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return pkgutil.resolve_name(_LATER[name])
