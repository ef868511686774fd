"""Results that are computed once, by one thread, and kept beside a run."""

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any


class kept_property(cached_property):  # noqa: N801
    """A property of a study (`Study`) that takes long.

    Its value is also kept beside the run, where that is asked for (`kept`).
    Threads compute some ahead: who asks meanwhile waits (`locks`).
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        def get(study: Any) -> Any:
            if study.kept is None:
                return function(study)
            points = hashlib.sha256(study.splits.grid.tobytes()).hexdigest()
            name = f"{function.__name__.strip('_')}-{points[:8]}"
            return study.kept.get(name, lambda: function(study))

        get.__doc__ = function.__doc__
        super().__init__(get)

    def __get__(self, study: Any, owner: type | None = None) -> Any:
        if study is None:
            return self
        with study.locks[self.attrname]:
            return super().__get__(study, owner)
