"""tfcomp: compositional generalization by forced rendering of latents.

A TensorFlow/Keras implementation of "Compositional Generalization via
Forced Rendering of Disentangled Latents" (ICML 2025). Importing the package
is cheap: TensorFlow is imported only by the modules that compute with it.
"""

import pkgutil
from typing import Any

__version__ = "0.1.0"

# Public names, and where they are; imported when they are first used.
_LATER = {
    "FactorTable": "tfcomp.datasets.factor_table:FactorTable",
    "evaluate": "tfcomp.api:evaluate",
    "write_report": "tfcomp.api:write_report",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tfcomp.config.quiet import start_tensorflow

    if name == "FactorTable":  # needs no TensorFlow
        return pkgutil.resolve_name(_LATER[name])
    with start_tensorflow():
        return pkgutil.resolve_name(_LATER[name])
