"""MPI3D: an `.npz` file with images alone, one of each combination."""

import math
from pathlib import Path

import numpy as np

from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.published import (
    PUBLISHED,
    describe_published,
    register_published,
)
from tfcomp.datasets.table_readers import LAYOUTS, Arrays

# The file of complex shapes has fewer colors and shapes, without names.
COMPLEX = {"color": 4, "shape": 4}

register_published(Path(__file__).with_name("mpi3d.toml"))


@LAYOUTS.register("MPI3D")
def read_mpi3d(arrays: Arrays) -> FactorTable | None:
    """Recognizes MPI3D by the number of its images."""
    if "images" not in arrays.names or "labels" in arrays.names:
        return None
    images = arrays.read("images", None)
    count = images.shape[0] if images.shape else 0
    plain = PUBLISHED.get("MPI3D").load().classes
    columns = describe_published("MPI3D")
    if count == math.prod(plain.values()):
        sizes = tuple(plain.values())
    elif count == math.prod((plain | COMPLEX).values()):
        sizes = tuple((plain | COMPLEX).values())
        del columns["levels"]
    else:
        return None

    places = np.unravel_index(np.arange(count), sizes)
    classes = np.stack(places, axis=1)
    return FactorTable(images, classes, **columns)
