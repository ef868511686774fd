"""Registries of the formats of `--data`; a plugin registers more.

    @READERS.register(".npz")         a file, by its ending, or `tfds:NAME`
    @FOLDER_READERS.register(".mat")  a folder, by the ending of files in it
    def read(path: Path) -> FactorTable: ...

    @LAYOUTS.register("MPI3D")        the arrays of an `.npz` or HDF5 file
    def read(arrays: Arrays) -> FactorTable | None: ...

A layout is None for arrays of another one.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from tfcomp.config.plugins import Registry

READERS = Registry("data")
FOLDER_READERS = Registry("data")
LAYOUTS = Registry("data")


@dataclass(frozen=True)
class Arrays:
    """The arrays of a file, which are read one by one.

    Attributes:
        names: Their names; in a group of HDF5, `group/name`.
        read: `read(name)` returns an array, `read(name, None)` also one that is
            as large as images are.
    """

    names: Collection[str]
    read: Callable[..., np.ndarray]
