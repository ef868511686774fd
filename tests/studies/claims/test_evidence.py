"""Threshold studies from files."""

from pathlib import Path

import pandas

from tfcomp.studies.claims import read_evidence


def test_threshold_tables(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "threshold"
    folder.mkdir(parents=True)
    (folder / "thresholds.csv").write_text(
        "kind,grid_size,reached,num_examples\nbumps,16,True,120\n"
        "bumps,24,False,\n"
    )
    damaged = tmp_path / "logs" / "damaged"
    damaged.mkdir()
    (damaged / "slopes.csv").write_bytes(b"\xff")
    (folder / "slopes.csv").write_text(
        "kind,criterion,slope,low,high,n\n"
        "bumps,position_accuracy,2.9,2.6,3.2,9\n"
    )
    evidence = read_evidence([str(tmp_path / "logs"), str(folder)])
    (study,) = evidence.studies  # found twice, read once
    assert study.flags == {} and study.path.name == "threshold"
    first, second = study.thresholds.to_dict("records")
    assert (first["grid_size"], first["num_examples"]) == (16, 120)
    assert (first["reached"], second["reached"]) == (True, False)
    # An empty cell, and a column that the file lacks.
    assert pandas.isna(second["num_examples"]) and pandas.isna(first["seed"])
    assert study.slopes["slope"].tolist() == [2.9]
    assert f"{damaged / 'slopes.csv'} is damaged" in evidence.notes[0]
    assert evidence.groups == ()
