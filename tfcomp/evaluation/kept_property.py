"""Results that are computed once, by one thread, and kept beside a run."""

import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tfcomp.analysis.kernel_regression import KernelFit
from tfcomp.analysis.manifolds import Components
from tfcomp.analysis.similarity import Shape
from tfcomp.analysis.superposition import SuperpositionScores
from tfcomp.analysis.tuning import Tuning
from tfcomp.evaluation.stage_blocks import StageNumbers
from tfcomp.storage.code_version import compute_code_version, hash_files
from tfcomp.storage.kept_results import KeptResults
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE, MODEL_FILE

KEPT_FOLDER = "computed"  # in the folder of a run
_KINDS = (Components, KernelFit, Shape, StageNumbers, SuperpositionScores)


class shared_property(cached_property):  # noqa: N801
    """A property of a study (`Study`) that takes long; threads compute some
    ahead, and who asks meanwhile waits (`locks`)."""

    def __get__(self, study: Any, owner: type | None = None) -> Any:
        if study is None:
            return self
        with study.locks[self.attrname]:
            return super().__get__(study, owner)


class kept_property(shared_property):  # noqa: N801
    """One that is also kept beside the run, if that is asked for (`kept`)."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        def get(study: Any) -> Any:
            if study.kept is None:
                return function(study)
            name = name_result(function.__name__, study.splits.grid)
            return study.kept.get(name, lambda: function(study))

        get.__doc__ = function.__doc__
        super().__init__(get)


def name_result(name: str, grid: np.ndarray) -> str:
    """What the value of a kept property at points [n, F] is kept by."""
    points = hashlib.sha256(grid.tobytes()).hexdigest()
    return f"{name.strip('_')}-{points[:8]}"


def open_kept(path: Path, plugins: str) -> KeptResults:
    """What is kept beside a finished run, as its files and the code are now."""
    files = [(n, path / n) for n in (FLAGS_FILE, METRICS_FILE, MODEL_FILE)]
    version = f"{compute_code_version(plugins)} {hash_files(files)}"
    classes = {kind.__name__: kind for kind in (*_KINDS, Tuning)}
    return KeptResults(path / KEPT_FOLDER, version, classes)
