"""The networks of a prediction study as two tables, a row for each network.

`networks.csv` of a study has the setting and the errors of every network, and
what was measured on its way: `0.1|id.volume` at a tenth of its training.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tfcomp.storage.files import DamagedFileError, read_xz

if TYPE_CHECKING:
    import pandas as pd

TABLE = "networks.csv"
RECORDED = ("reached", "steps", "id_relative_mse", "ood_relative_mse")
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

Array = NDArray[Any]
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

    def select(self, rows: NDArray[np.bool_]) -> Networks:
        """Returns the networks of some rows."""
        table, numbers = self.table[rows], self.numbers[rows]
        return Networks(table, numbers, self.hyperparameters)

    @property
    def fitted(self) -> Networks:
        """The networks that reached the target."""
        return self.select(self.table["reached"].to_numpy(bool))

    def join(self, fresh: Networks) -> Networks:
        """Returns the networks of both studies; the other ones are fresh."""
        import pandas as pd

        tables = self.table, fresh.table.assign(is_fresh=True)
        frames = self.numbers, fresh.numbers
        table, numbers = (
            pd.concat(each, ignore_index=True) for each in (tables, frames)
        )
        return Networks(table, numbers, self.hyperparameters)

    def get_half(self, name: str) -> Networks:
        """Returns the fitted networks of one of `HALVES`."""
        fitted = self.fitted
        return fitted.select((fitted.table["half"] == name).to_numpy())

    @cached_property
    def outcome(self) -> Array:
        """The logarithm of the OOD error, [n]."""
        return take_log(self.table[OUTCOME])

    @cached_property
    def cells(self) -> Array:
        """The number of the setting of each network, [n]."""
        groups = self.table.groupby(self.hyperparameters, sort=True)
        return groups.ngroup().to_numpy()

    @property
    def keys(self) -> list[Key]:
        """All numbers, by the time of measurement."""
        columns: list[Any] = list(self.numbers)
        return [(str(name), float(time)) for name, time in columns]

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
        return [k for k in self.keys if usable[k] and k[0] != SHARE]


def take_log(errors: pd.Series) -> Array:
    """Returns decimal logarithms of errors."""
    return np.log10(np.maximum(errors.to_numpy(float), SMALLEST))


def read_networks(path: Path) -> Networks:
    """Reads the table of a study, as it is or compressed.

    Raises:
        DamagedFileError: If the file is no such table.
        OSError: If it is missing.
    """
    import pandas as pd

    content = read_xz(path) if path.suffix == ".xz" else path.read_bytes()
    try:
        table = pd.read_csv(
            io.BytesIO(content), dtype=str, keep_default_na=False
        )
        columns = list(map(str, table))
        varied = columns[columns.index("half") + 1 : columns.index("seed")]
        table["reached"] = table["reached"] == "True"
        table["is_fresh"] = False
        for name in (ID_ERROR, OUTCOME):
            table[name] = pd.to_numeric(table[name])
        numbers = {
            (name, float(time)): pd.to_numeric(table[column])
            for column in columns
            for time, bar, name in [column.partition("|")]
            if bar
        }
    except (LookupError, ValueError) as error:
        raise DamagedFileError(path, error) from error
    for key in numbers:
        if key[0] == ID_ERROR:
            numbers[key] = pd.Series(take_log(numbers[key]))
    keys = sorted(numbers, key=lambda key: key[::-1])
    frame = pd.DataFrame({key: numbers[key] for key in keys}, table.index)
    return Networks(table, frame.astype(float), varied)


def make_row(
    setting: Mapping[str, Any], seed: int, record: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the row of a network in the table, from what is recorded."""
    row = {"half": choose_half(setting), **setting, "seed": seed}
    row |= {name: record.get(name) for name in RECORDED}
    for time, numbers in record.get("measures", {}).items():
        row |= {f"{time}|{name}": value for name, value in numbers.items()}
    return row


def choose_half(setting: Mapping[str, Any]) -> str:
    """Returns the half of the design that a setting is in, by its hash."""
    text = json.dumps(setting, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return HALVES[int(digest, 16) % 2]
