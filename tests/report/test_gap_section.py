"""Curves of levels whose names no file can have."""

from pathlib import Path

import numpy as np

import tfcomp


def test_names_of_levels_are_not_names_of_files(tmp_path: Path) -> None:
    classes = np.stack(np.unravel_index(np.arange(24), (3, 8)), axis=1)
    images = np.random.default_rng(0).random((24, 4, 4)).astype("f4")
    table = tfcomp.FactorTable(
        images,
        classes,
        names=["kind", "x"],
        levels=[["a/b", "a_b", "../c"], None],
    )
    result = tfcomp.evaluate(table.draw, table, region="x:3-4")
    page = result.write_report(tmp_path / "report")
    files = {path.name for path in page.parent.iterdir()}
    assert {path.parent for path in tmp_path.rglob("*.csv")} == {page.parent}
    assert {
        f"model_interpolation_kind_{name}.csv"
        for name in ("a_b_0", "a_b", ".._c_2")
    } <= files
