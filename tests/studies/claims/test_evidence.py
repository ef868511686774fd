"""Evidence from files: sweeps, other versions, repeats, damaged runs."""

import json
import os
from pathlib import Path

import pandas

from tfcomp.config.run_flags import format_flags, parse_config
from tfcomp.studies.claims.evidence import read_evidence


def write_run(path: Path, *flags: str, relative: float = 0.8) -> None:
    config = parse_config(
        ["--flagfile=donut.flags", f"--run_name={path.name}", *flags]
    )
    path.mkdir(parents=True)
    header = "# tensorflow: 2.21.0\n# cores: 2\n"
    (path / "run.flags").write_text(header + format_flags(config))
    metrics = {
        "ood": {"relative_mse": relative},
        "layers": {"code": {"factorization": 1.0}, "image": {}},
    }
    (path / "metrics.json").write_text(json.dumps(metrics))


def test_runs_of_a_sweep(tmp_path: Path) -> None:
    trials = tmp_path / "depth" / "trials"
    write_run(trials / "ab12", "--seed=3", "--depth=2", "--sigma=1.5")
    measures = {
        "version": "x",
        "stages": ["code", "image"],
        "log_volume_sd": [0.0, 1.5],
        "superposition_r2": 0.4,
        "conjunctive_r2": None,
    }
    (trials / "ab12" / "measures.json").write_text(json.dumps(measures))
    (run,) = read_evidence([str(tmp_path)]).runs
    assert (run.seed, run.flags["depth"], run.flags["sigma"]) == (3, 2, 1.5)
    assert run.name == "depth/ab12"
    assert run.origin == {"tensorflow": "2.21.0", "cores": "2"}
    assert run.get("ood/relative_mse") == 0.8
    assert run.get("superposition_r2") == 0.4
    assert run.get("conjunctive_r2") is None
    assert run.get("log_volume_sd") is None  # a list is no number
    assert run.get_stages("log_volume_sd") == {"code": 0.0, "image": 1.5}
    assert run.get_stages("factorization") == {"code": 1.0, "image": None}
    assert run.get_stages("nothing") == {}


def test_runs_of_other_versions(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    file = tmp_path / "run" / "run.flags"
    lines = [
        line for line in file.read_text().splitlines() if "--sigma" not in line
    ]
    file.write_text("\n".join([*lines, "--new_flag=7", "--resume=true"]))
    (run,) = read_evidence([str(tmp_path)]).runs
    assert run.flags["sigma"] == 1.0  # the default
    assert run.flags["new_flag"] == "7"
    assert run.flags["resume"] is True


def test_repeats_are_one_experiment(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "--seed=1", relative=0.1)
    write_run(tmp_path / "b", "--seed=1", "--eval_every=5", relative=0.2)
    (tmp_path / "a" / "measures.json").write_text('{"version": "x"}')
    write_run(tmp_path / "c", "--seed=2")
    for time, kept in ((2000, "b"), (500, "a"), (1000, "a")):
        # The newer; of two of one time, the one that is measured.
        os.utime(tmp_path / "a" / "metrics.json", (1000, 1000))
        os.utime(tmp_path / "b" / "metrics.json", (time, time))
        evidence = read_evidence([str(tmp_path)])
        assert {run.path.name for run in evidence.runs} == {kept, "c"}
        (note,) = evidence.notes
        assert "repeats" in note and note.endswith(f"/{kept}")


def test_unfinished_and_damaged_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "good")
    write_run(tmp_path / "unfinished", "--seed=1")
    (tmp_path / "unfinished" / "metrics.json").unlink()
    for name, text in (("half", "{"), ("list", "[]")):
        write_run(tmp_path / name, "--seed=2")
        (tmp_path / name / "metrics.json").write_text(text)
    write_run(tmp_path / "words", "--seed=3")
    flags = tmp_path / "words" / "run.flags"
    flags.write_text(flags.read_text().replace("--depth=4", "--depth=four"))
    evidence = read_evidence([str(tmp_path)])
    assert [run.path.name for run in evidence.runs] == ["good"]
    assert len(evidence.notes) == 3
    assert all("cannot be read" in note for note in evidence.notes)


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
    assert study.flags == {} and study.name == "logs/threshold"
    first, second = study.thresholds.to_dict("records")
    assert (first["grid_size"], first["num_examples"]) == (16, 120)
    assert (first["reached"], second["reached"]) == (True, False)
    # An empty cell, and a column that the file lacks.
    assert pandas.isna(second["num_examples"]) and pandas.isna(first["seed"])
    assert study.slopes["slope"].tolist() == [2.9]
    assert f"{damaged / 'slopes.csv'} is damaged" in evidence.notes[0]
    assert evidence.runs == ()
