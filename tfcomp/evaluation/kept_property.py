"""Results that are computed once, by one thread, and kept beside a run."""

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np


class shared_property(cached_property):  # noqa: N801
    """A property of a study (`Study`) that takes long.

    Threads compute some ahead: who asks meanwhile waits (`locks`).
    """

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
