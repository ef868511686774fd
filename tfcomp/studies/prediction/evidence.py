"""From the records of a study to arrays of networks."""

from collections.abc import Sequence

import numpy as np

from tfcomp.studies.prediction.design import DECODER, Found
from tfcomp.studies.prediction.judgement import ID_ERROR, Evidence, Key
from tfcomp.studies.prediction.networks import Networks
from tfcomp.studies.records import Record

OUTCOME = "ood_relative_mse"
# An error as small as this is none.
SMALLEST = 1e-12


def make_evidence(
    found: Sequence[Found], hyperparameters: Sequence[tuple[str, ...]]
) -> Evidence | None:
    """The networks that met the target; None if there are none.

    The outcome is log10 of the OOD relative MSE. Errors of ID images are
    logarithms, too.
    """
    met = [each for each in found if each.record["reached"]]
    if not met:
        return None
    values = {
        "/".join(names): [
            "/".join(str(each.cell.setting[n]) for n in names) for each in met
        ]
        for names in hyperparameters
    }
    settings = {name: _number(texts) for name, texts in values.items()}
    errors = np.array([each.record[OUTCOME] for each in met])
    outcome = np.log10(np.maximum(errors, SMALLEST))
    noise = _pool_deviation(outcome, [each.cell.name for each in met])
    decoder = next("/".join(n) for n in hyperparameters if DECODER in n)
    networks = Networks(outcome, settings, noise)
    table = _tabulate([each.record for each in met])
    return Evidence(networks, table, decoder, sorted(set(values[decoder])))


def _number(values: Sequence[str]) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


def _pool_deviation(outcome: np.ndarray, names: Sequence[str]) -> float:
    """Standard deviation over the seeds of a setting, of all settings."""
    groups = np.unique(names, return_inverse=True)[1]
    means = np.bincount(groups, outcome) / np.bincount(groups)
    freedom = len(outcome) - len(means)
    rest = outcome - means[groups]
    return float(np.sqrt((rest**2).sum() / freedom)) if freedom else 0.0


def _tabulate(records: Sequence[Record]) -> dict[Key, np.ndarray]:
    """Every number of every time, [n], in the order of their names."""
    keys = {
        (name, time)
        for record in records
        for time, numbers in record["measures"].items()
        for name in numbers
        if name != "share"
    }
    table = {}
    for name, time in sorted(keys, key=lambda key: (float(key[1]), key[0])):
        found = [r["measures"].get(time, {}).get(name) for r in records]
        values = np.array([np.nan if v is None else v for v in found])
        if name == ID_ERROR:
            values = np.log10(np.maximum(values, SMALLEST))
        table[name, time] = values
    return table
