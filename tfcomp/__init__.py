"""tfcomp: compositional generalization by forced rendering of latents.

A TensorFlow/Keras implementation of "Compositional Generalization via
Forced Rendering of Disentangled Latents" (ICML 2025). Importing the package
is cheap: names are imported on first use, and TensorFlow only by names that
compute with it.
"""

import pkgutil
from contextlib import nullcontext
from types import FunctionType
from typing import Any

__version__ = "0.4.0"

# Public names by module. Their types are in `__init__.pyi`.
_LAZY = {
    "sweep": "run_sweep",
    "train": "describe_run train_run",
    "config.errors": "ConfigError RunError",
    "config.plugins": "register_callback",
    "config.run_config": "RunConfig",
    "datasets.factor_table": "FactorTable",
    "figures.exhibits": "Exhibit",
    "report.model_report": (
        "ModelReport evaluate load_published load_run write_report"
    ),
    "report.representations": "evaluate_embeddings evaluate_encoder",
    "report.coverage": "coverage_table plot_coverage",
    "report.page": "register_section",
    "report.table_plots": "plot_curves plot_scores",
    "report.untrained_coverage": "cover_embeddings",
    "representations.readers": "Reader train_reader",
    "metrics.registry": "register_measure register_metric",
    "storage.run_folder": "list_published",
    "tables": "load_sweep read_runs",
}
_WITH_TENSORFLOW = (
    "report.model_report report.representations representations.readers"
).split()
__all__ = sorted(" ".join(_LAZY.values()).split())


def __getattr__(name: str) -> Any:
    module = ""
    for place, names in _LAZY.items():
        if name in names.split():
            module = place
    if not module:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tfcomp.config.errors import name_arguments
    from tfcomp.config.process import start_tensorflow

    is_light = module not in _WITH_TENSORFLOW
    with nullcontext() if is_light else start_tensorflow(is_cli=False):
        value = pkgutil.resolve_name(f"{__name__}.{module}:{name}")
    if isinstance(value, FunctionType):
        value = name_arguments(value)
    globals()[name] = value  # the same object from now on
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
