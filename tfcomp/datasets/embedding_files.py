"""Files of embeddings with factors, and tables of factors without images.

classes  integers [n, F], with `names`, `levels` ... as in `table_files`;
         or else a column [n] of numbers or text for each factor
images   [n, H, W] or [n, H, W, C], optional, to show
...      every other array [n, ...] is a layer
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfcomp.config.machine import count_memory
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.table_files import OPTIONS, open_npz, read_options


def read_embeddings(
    path: str, layers: Sequence[str] = (), factors: Sequence[str] = ()
) -> tuple[FactorTable, dict[str, np.ndarray]]:
    """Reads an `.npz` file; returns its table and embeddings by layer.

    Args:
        path: The file. No pickle is opened.
        layers: Names of its layers; by default all arrays of two axes or more.
        factors: Columns that are factors, if there are no classes; by default
            all arrays of one axis.
    """
    members, read, find = open_npz(path)
    arrays = {name: find(name) for name in members if name not in OPTIONS}
    for name in (*layers, *factors):
        if name not in arrays:
            known = ", ".join(arrays) or "none"
            raise TableError("members", f"must be among {known}", name)
    images = arrays.get("images")
    others = {n: a for n, a in arrays.items() if n not in ("images", "classes")}
    if "classes" in arrays:
        options = read_options(members, read)
        table = FactorTable(images, read("classes"), **options)
    else:
        columns = factors or [n for n, a in others.items() if len(a.shape) == 1]
        table = make_table({name: read(name) for name in columns}, images)
    names = layers or [n for n, a in others.items() if len(a.shape) > 1]
    size = sum(_count_bytes(others[name]) for name in names)
    if size > (most := count_memory()):
        rule = f"must fit into the memory ({most >> 20:,} MB)"
        raise TableError("layers", rule, f"{size >> 20:,} MB")
    return table, {name: others[name].load() for name in names}


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
    if len({len(codes) for codes in classes}) > 1:
        lengths = [len(codes) for codes in classes]
        raise TableError("columns", "must have one length", lengths)
    return FactorTable(
        images,
        np.stack(classes, axis=1),
        values,
        names=[str(name) for name in columns],
        levels=levels,
    )


def _count_bytes(array: Any) -> int:
    return math.prod(array.shape) * array.dtype.itemsize
