"""The networks of a prediction study as two tables, a row for each network.

`networks.csv` of a study has the settings and errors of every network, and
names the JSON file with the numbers that were measured on its way.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tfcomp.storage.files import DamagedFileError, read_csv, read_json

TABLE = "networks.csv"
ID_ERROR, OUTCOME = "id_relative_mse", "ood_relative_mse"
DECODER, REGION = "model", "region"
HALVES = ("explore", "confirm")
# Prefixes of numbers: those of ID points alone, and those that see OOD points.
ID_ONLY, ALL_POINTS = "id.", "all."
MIN_SHARE = 0.9  # of the networks must have a number
MIN_NETWORKS = 4
# Of a network, how much of its training was over at a look.
SHARE = "share"
SMALLEST = 1e-12  # smaller errors count as this one

Array = NDArray[np.float64]
# The name of a number, and when it was measured, as a share of the training.
Key = tuple[str, float]


@dataclass(frozen=True)
class Networks:
    """Networks of a study.

    Attributes:
        table: Hyperparameters as text, then `half`, `seed`, `reached`,
            `id_relative_mse`, `ood_relative_mse`, and `is_fresh`, which is
            True for networks that nothing was chosen on.
        numbers: A column for each `Key`, NaN where a network lacks a number.
        hyperparameters: The names of the columns that the study varied.
    """

    table: pd.DataFrame
    numbers: pd.DataFrame
    hyperparameters: list[str]

    def select(self, rows: NDArray[np.bool_]) -> "Networks":
        """Returns the networks of some rows."""
        table, numbers = self.table[rows], self.numbers[rows]
        return Networks(table, numbers, self.hyperparameters)

    @property
    def fitted(self) -> "Networks":
        """The networks that reached the target."""
        return self.select(self.table["reached"].to_numpy(bool))

    def join(self, fresh: "Networks") -> "Networks":
        """Returns the networks of both studies; the other ones are fresh."""
        tables = self.table, fresh.table.assign(is_fresh=True)
        frames = self.numbers, fresh.numbers
        table, numbers = (
            pd.concat(each, ignore_index=True) for each in (tables, frames)
        )
        return Networks(table, numbers, self.hyperparameters)

    def get_half(self, name: str) -> "Networks":
        """Returns the fitted networks of one of `HALVES`."""
        fitted = self.fitted
        return fitted.select((fitted.table["half"] == name).to_numpy())

    @cached_property
    def outcome(self) -> Array:
        """The logarithm of the OOD error, [n]."""
        return take_log(self.table[OUTCOME])

    @cached_property
    def cells(self) -> NDArray[np.int_]:
        """The number of the setting of each network, [n]."""
        groups = self.table.groupby(self.hyperparameters, sort=True)
        return groups.ngroup().to_numpy()

    def get(self, key: Key) -> Array:
        """Returns a number of all networks, [n]."""
        return self.numbers[key].to_numpy(float)

    def list_keys(self) -> list[Key]:
        """Returns the numbers that most networks have and that differ."""
        counts = self.numbers.notna().sum()
        usable = (counts >= MIN_SHARE * len(self.table)) & (
            counts >= MIN_NETWORKS
        )
        usable &= self.numbers.max() > self.numbers.min()
        return [k for k in self.numbers if usable[k] and k[0] != SHARE]


def take_log(errors: pd.Series) -> Array:
    """Returns decimal logarithms of errors."""
    return np.log10(np.maximum(errors.to_numpy(float), SMALLEST))


def read_networks(folder: Path) -> Networks:
    """Reads the networks of a study of any version.

    Raises:
        DamagedFileError: If a file is no such table or record.
        OSError: If a file is missing.
    """
    rows = read_csv(folder / TABLE)
    try:
        names = list(rows[0])
        varied = names[names.index("half") + 1 : names.index("seed")]
        files = [folder / "networks" / f"{row['record']}.json" for row in rows]
        records = [read_json(file) for file in files]
        table = pd.DataFrame(rows)[["half", *varied, "seed"]]
        table["reached"] = [record["reached"] for record in records]
        for name in (ID_ERROR, OUTCOME):
            table[name] = [record.get(name, np.nan) for record in records]
            table[name] = table[name].astype(float)
        table["is_fresh"] = False
        looks = [_list_numbers(record) for record in records]
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise DamagedFileError(folder / TABLE, error) from error
    keys = {key for look in looks for key in look}
    numbers = {
        key: [look.get(key, np.nan) for look in looks]
        for key in sorted(keys, key=lambda key: key[::-1])
    }
    frame = pd.DataFrame(numbers, table.index, dtype=float)
    for key in frame:
        if key[0] == ID_ERROR:
            frame[key] = take_log(frame[key])
    return Networks(table, frame, varied)


def _list_numbers(record: dict) -> dict[Key, float]:
    """Returns the numbers of a network at all times."""
    return {
        (name, float(time)): value
        for time, numbers in record.get("measures", {}).items()
        for name, value in numbers.items()
    }
