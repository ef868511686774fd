"""The networks of the prediction study, a row each.

`networks.csv.xz` has the setting and the errors of each network, and numbers
measured during its training: `0.1|id.volume` after a tenth of it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tfcomp.storage.files import DamagedFileError, read_xz

ID_ERROR, OUTCOME = "id_relative_mse", "ood_relative_mse"
DECODER, REGION = "model", "region"

Array = NDArray[Any]


class Networks:
    """Networks; hyperparameters are the columns from `half` to `seed`."""

    def __init__(self, table: pd.DataFrame) -> None:
        columns = [str(name) for name in table]
        start, end = columns.index("half") + 1, columns.index("seed")
        self.table, self.hyperparameters = table, columns[start:end]
        self.outcome = take_log(table[OUTCOME])  # [n]
        groups = table.groupby(self.hyperparameters, sort=True)
        self.cells: Array = groups.ngroup().to_numpy()  # settings, [n]

    def select(self, rows: Any) -> Networks:
        return Networks(self.table[rows])

    def get_half(self, name: str) -> Networks:
        """Returns the networks of a half that reached the target."""
        return self.select(self.table["reached"] & (self.table["half"] == name))

    def list_numbers(self) -> list[str]:
        """Returns the numbers that all networks have, and that differ."""
        numbers = self.table.filter(like="|").dropna(axis=1)
        differ = map(str, numbers.columns[numbers.max() > numbers.min()])
        # The share of the training that was over is no measure.
        found = [key for key in differ if split_number(key)[0] != "share"]
        return sorted(found, key=lambda key: split_number(key)[::-1])


def take_log(errors: pd.Series) -> Array:
    """Returns decimal logarithms of errors, of at least 1e-12."""
    return np.log10(np.maximum(errors.to_numpy(float), 1e-12))


def split_number(key: str) -> tuple[str, float]:
    """Returns the name of a number, and when it was measured."""
    time, _, name = key.partition("|")
    return name, float(time)


def read_networks(path: Path) -> Networks:
    """Reads the packed table of a study; DamagedFileError if it is none."""
    content = io.BytesIO(read_xz(path))
    texts: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
    try:
        table = pd.read_csv(content, dtype=str, **texts)
        numbers = [ID_ERROR, OUTCOME, *table.filter(like="|")]
        table = table.astype(dict.fromkeys(numbers, float)).copy()
        for name in table.filter(like=f"|{ID_ERROR}"):
            table[name] = take_log(table[name])
        reached = table["reached"] == "True"
        # Nothing was chosen on fresh networks.
        return Networks(table.assign(reached=reached, is_fresh=False))
    except (LookupError, ValueError) as error:
        raise DamagedFileError(path, error) from error
