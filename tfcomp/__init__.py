"""tfcomp: compositional generalization by forced rendering of latents.

A TensorFlow/Keras implementation of "Compositional Generalization via
Forced Rendering of Disentangled Latents" (ICML 2025). Importing the package
is cheap: what it offers is imported when it is first used, and TensorFlow
only by what computes with it.
"""

import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfcomp.api import describe_run, judge_claims, run_sweep
    from tfcomp.config.errors import ConfigError, RunError
    from tfcomp.config.run_config import RunConfig
    from tfcomp.datasets.factor_table import FactorTable
    from tfcomp.report.evaluated import (
        Evaluated,
        evaluate,
        load_run,
        write_report,
    )
    from tfcomp.train import train_run

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "Evaluated",
    "FactorTable",
    "RunConfig",
    "RunError",
    "describe_run",
    "evaluate",
    "judge_claims",
    "load_run",
    "run_sweep",
    "train_run",
    "write_report",
]

# Where the public names are; those of `report` need TensorFlow.
_LATER = {
    "api": ("describe_run", "judge_claims", "run_sweep"),
    "config.errors": ("ConfigError", "RunError"),
    "config.run_config": ("RunConfig",),
    "datasets.factor_table": ("FactorTable",),
    "report.evaluated": ("Evaluated", "evaluate", "load_run", "write_report"),
    "train": ("train_run",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names:
            return _import(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _import(module: str, name: str) -> Any:
    path = f"{__name__}.{module}:{name}"
    if not module.startswith("report"):
        return pkgutil.resolve_name(path)
    from tfcomp.config.quiet import start_tensorflow

    with start_tensorflow():
        return pkgutil.resolve_name(path)
