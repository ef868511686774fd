"""The networks of the prediction study, a row each.

`networks.csv.xz` has the setting and the errors of each network, and numbers
measured during its training: `0.1|id.volume` after a tenth of it.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tfcomp.storage.files import DamagedFileError, read_xz

ID_ERROR, OUTCOME = "id_relative_mse", "ood_relative_mse"
DECODER, REGION = "model", "region"
# Prefixes of numbers of ID points alone, and of numbers that see OOD points.
ID_ONLY, ALL_POINTS = "id.", "all."
SHARE = "share"  # of the training that was over at a measurement
SMALLEST = 1e-12  # smaller errors count as this one

Array = NDArray[Any]


class Networks:
    """Networks of a study.

    Attributes:
        table: Hyperparameters as text, between `half` and `seed`; `reached`,
            `id_relative_mse` and `ood_relative_mse`; all numbers; `is_fresh`,
            True for networks that nothing was chosen on.
        hyperparameters: Names of the columns that the study varied.
        outcome: Logarithms of the OOD error, [n].
        cells: The number of the setting of each network, [n].
    """

    def __init__(self, table: pd.DataFrame) -> None:
        columns = [str(name) for name in table]
        start, end = columns.index("half") + 1, columns.index("seed")
        self.table, self.hyperparameters = table, columns[start:end]
        self.outcome = take_log(table[OUTCOME])
        groups = table.groupby(self.hyperparameters, sort=True)
        self.cells: Array = groups.ngroup().to_numpy()

    def select(self, rows: Any) -> "Networks":
        """Returns the networks of some rows."""
        return Networks(self.table[rows])

    def get_half(self, name: str) -> "Networks":
        """Returns the networks of a half that reached the target."""
        return self.select(self.table["reached"] & (self.table["half"] == name))

    def list_numbers(self) -> list[str]:
        """Returns the numbers that all networks have, and that differ."""
        numbers = self.table.filter(like="|").dropna(axis=1)
        differ = numbers.columns[numbers.max() > numbers.min()]
        found = [str(k) for k in differ if split_number(str(k))[0] != SHARE]
        return sorted(found, key=lambda key: split_number(key)[::-1])


def take_log(errors: pd.Series) -> Array:
    """Returns decimal logarithms of errors."""
    return np.log10(np.maximum(errors.to_numpy(float), SMALLEST))


def split_number(key: str) -> tuple[str, float]:
    """Returns the name of a number, and when it was measured."""
    time, _, name = key.partition("|")
    return name, float(time)


def read_networks(path: Path) -> Networks:
    """Reads the packed table of a study; DamagedFileError if it is none."""
    content = io.BytesIO(read_xz(path))
    try:
        table = pd.read_csv(
            content, dtype=str, keep_default_na=False, na_values=[""]
        )
        measured = [name for name in map(str, table) if "|" in name]
        numbers = [ID_ERROR, OUTCOME, *measured]
        table = table.astype(dict.fromkeys(numbers, float)).copy()
        for name in measured:
            if name.endswith(f"|{ID_ERROR}"):
                table[name] = take_log(table[name])
        reached = table["reached"] == "True"
        return Networks(table.assign(reached=reached, is_fresh=False))
    except (LookupError, ValueError) as error:
        raise DamagedFileError(path, error) from error
