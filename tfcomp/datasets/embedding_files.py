"""Files of embeddings with factors, and tables of factors without images.

classes  integers [n, F], with `names`, `levels` ... as in `table_files`;
         or else a column [n] of numbers or text for each factor
images   [n, H, W] or [n, H, W, C], optional, to show
...      every other array [n, ...] is a layer
"""

from typing import Any

import numpy as np

from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_files import OPTIONS, open_npz, read_options


def read_embeddings(path: str) -> tuple[FactorTable, dict[str, np.ndarray]]:
    """Reads the table and the layers of an `.npz` file; opens no pickle."""
    members, read, find = open_npz(path)
    arrays = {name: find(name) for name in members if name not in OPTIONS}
    images = arrays.pop("images", None)
    if "classes" in arrays:
        options = read_options(members, read)
        table = FactorTable(images, arrays.pop("classes").load(), **options)
    else:
        names = [name for name, a in arrays.items() if len(a.shape) == 1]
        table = make_table({name: read(name) for name in names}, images)
    layers = {n: a.load() for n, a in arrays.items() if len(a.shape) > 1}
    return table, layers


def make_table(columns: Any, images: Any = None) -> FactorTable:
    """Returns the table of columns [n] of numbers or text, one per factor.

    The columns are a mapping by name, or a DataFrame.
    """
    if not len(columns):
        rule = "must be given, as classes [n, F] or columns [n]"
        raise TableError("factors", rule, "none")
    classes, values, levels = [], [], []
    for name, column in columns.items():
        array = np.asarray(column)
        is_number = array.dtype.kind in "buif"
        if is_number and not np.isfinite(array).all():
            raise TableError(f"the column {name}", "must have no gaps", "NaN")
        given = array.astype(float) if is_number else array.astype(str)
        known, codes = np.unique(given, return_inverse=True)
        classes.append(codes.reshape(-1))
        values.append(known if is_number else None)
        levels.append(None if is_number else known.tolist())
    names = [str(name) for name in columns]
    index = np.stack(classes, axis=1)
    return FactorTable(images, index, values, names=names, levels=levels)
