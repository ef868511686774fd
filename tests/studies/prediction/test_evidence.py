"""The committed study: its tables follow from what it recorded."""

from pathlib import Path

import pandas as pd
import pytest

from tfcomp.storage.run_search import find_folders
from tfcomp.studies.claims.packed_evidence import unpack
from tfcomp.studies.prediction.networks import HALVES, Networks, read_networks
from tfcomp.studies.prediction.rules import judge

DOCS = Path(__file__).parents[3] / "docs"
# Of 460 rows, those that the page speaks of most.
KEYS = [
    ("id.factorization.last", 0.1),
    ("id_relative_mse", 0.25),
    ("all.alignment_radial", 1.0),
]


@pytest.fixture(scope="module")
def study() -> tuple[Networks, dict[str, pd.DataFrame]]:
    """The networks, and the tables that were made of them at the time."""
    with unpack([str(DOCS / "predict_evidence")]) as (_, place):
        (folder,) = find_folders([place], lambda n: "predict.flags" in n)
        tables = {
            half: pd.read_csv(folder / f"{half}.csv").set_index(
                ["measure", "time"]
            )
            for half in HALVES
        }
        return read_networks(folder), tables


def test_a_thousand_networks_reached_the_target(
    study: tuple[Networks, dict[str, pd.DataFrame]],
) -> None:
    networks, tables = study
    assert len(networks.table) == 1152
    assert networks.table["reached"].sum() == 1046
    for half in HALVES:
        assert networks.get_half(half).list_keys() == sorted(
            tables[half].index, key=lambda key: key[::-1]
        )


def test_tables_are_what_the_records_give(
    study: tuple[Networks, dict[str, pd.DataFrame]],
) -> None:
    networks, tables = study
    first, second = (networks.get_half(half) for half in HALVES)
    proposed = list(tables["explore"].query("passes").index)
    signs = tables["explore"]["sign"].to_dict()
    again = judge(first, KEYS), judge(second, KEYS, signs, proposed)
    for half, rows in zip(HALVES, again, strict=True):
        for key, row in zip(KEYS, rows, strict=True):
            committed = tables[half].loc[key]
            for name in set(row) - {"measure", "time"}:
                assert committed[name] == pytest.approx(row[name])


def test_page_shows_the_tables(
    study: tuple[Networks, dict[str, pd.DataFrame]],
) -> None:
    page = (DOCS / "predict.md").read_text("utf-8").replace("−", "-")
    for table in study[1].values():
        for row in (table.loc[key] for key in KEYS):
            for name in ("tau", "conditional_tau", "gain"):
                ends = (row[name + end] for end in ("", "_low", "_high"))
                tau, low, high = (f"{e:.2f}".replace("0.", ".") for e in ends)
                assert f"{tau} [{low}, {high}]" in page
