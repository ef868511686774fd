"""Writes the runs of a sweep into one packed file (`tfcomp.tables.packs`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfcomp.storage import files
from tfcomp.tables.packs import ENDING, KEYS, NULL

if TYPE_CHECKING:
    from pandas import DataFrame


def write_pack(
    folder: Path, study: str, tables: tuple[DataFrame, DataFrame]
) -> tuple[Path, bool]:
    """Writes the runs of a study; returns its file, and False if unchanged."""
    runs, numbers = tables
    # Deep networks first, whose columns have the stages of others in order.
    counts = numbers.groupby("run")["stage"].transform("nunique")
    order = counts.sort_values(ascending=False, kind="stable").index
    numbers = numbers.loc[order]
    column = numbers[KEYS[1]].str.cat(numbers[KEYS[2:]], sep="|")
    texts = numbers["value"].map(repr).where(numbers["value"].notna(), NULL)
    wide = texts.set_axis([numbers["run"], column]).unstack(sort=False)
    # These follow from the other columns.
    derived = ["study", "folder", "setting", "round"]
    runs = runs.set_index("run").drop(columns=derived).dropna(axis=1, how="all")
    table = runs.join(wide).fillna("").sort_values("name")
    text = table.to_csv(index=False, lineterminator="\n")
    path = files.make_folder(folder) / f"{study}{ENDING}"
    return path, files.write_xz(path, text.encode())
