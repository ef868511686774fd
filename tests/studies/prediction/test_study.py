"""A study of small networks: what it trains, records, and writes."""

import csv
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import parse_flags
from tfcomp.studies.prediction import command as predict
from tfcomp.studies.prediction import design
from tfcomp.studies.prediction.design import PredictionStudy, choose_half
from tfcomp.studies.prediction.network_training import forget_held_out

FLAGS = (
    "--flagfile=predict_smoke.flags",
    "--epochs=20",
    "--steps_per_epoch=5",
    "--target=0.95",
    "--width=32",
    "--seeds=1",
)
# Of one network, whose functions are traced once.
GRID = ("--grid=model=mlp", "--grid=learning_rate=5e-3,1e-2")
NOTHING = "no measure passes the rules"


def make_study(folder: Path, *flags: str) -> PredictionStudy:
    own = [*FLAGS, *(flags or GRID), f"--log_dir={folder}"]
    values = parse_flags(own, predict.define_flags())
    # Without the grid of the file, which flags can only add to.
    specs = [f for f in flags or GRID if f.startswith("--grid=")]
    values["grid"] = [spec.removeprefix("--grid=") for spec in specs]
    return design.make_study(values)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> PredictionStudy:
    """A finished study; do not change its folder."""
    study = make_study(tmp_path_factory.mktemp("study"))
    for item in study.items:
        function, lines = study.make_call(item)
        function(["", *lines])
    return study


def read_records(study: PredictionStudy) -> dict[str, bytes]:
    files = (study.folder / "networks").glob("*.json")
    return {file.name: file.read_bytes() for file in files}


def test_a_network_is_measured_on_its_way(study: PredictionStudy) -> None:
    records = [json.loads(text) for text in read_records(study).values()]
    assert len(records) == 2 and any(r["reached"] for r in records)
    for record in (r for r in records if r["reached"]):
        assert record["id_relative_mse"] <= 0.95
        shares = [m["share"] for m in record["measures"].values()]
        assert shares[0] == 0 and shares[-1] == 1 and shares == sorted(shares)
        last = record["measures"]["1"]
        assert last["id_relative_mse"] == record["id_relative_mse"]
        assert {name.partition(".")[0] for name in last} == {
            *("id", "all", "share", "id_relative_mse")
        }


def test_a_lost_record_is_made_again_to_the_byte(
    study: PredictionStudy,
) -> None:
    before = read_records(study)
    path = study.folder / "networks" / min(before)
    path.write_text("{")  # damaged
    (missing,) = study.list_missing()
    function, lines = study.make_call(missing)
    function(["", *lines])
    assert read_records(study) == before


def test_recorded_networks_are_judged_again_from_a_pack(
    study: PredictionStudy, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    study.write_tables({})
    study.write_reports()
    assert NOTHING in capsys.readouterr().out
    table = (study.folder / "networks.csv").read_bytes()
    (tmp_path / "networks.csv.xz").write_bytes(lzma.compress(table))
    flags = [f"--runs={tmp_path}", f"--output={tmp_path}/again"]
    assert predict.main(["predict", *flags]) == 0
    assert NOTHING in capsys.readouterr().out
    tables = {f.name: f.read_bytes() for f in study.folder.glob("*.csv")}
    again = {f.name: f.read_bytes() for f in (tmp_path / "again").glob("*.csv")}
    rows = list(
        csv.DictReader(tables.pop("networks.csv").decode().splitlines())
    )
    assert {row["learning_rate"] for row in rows} == {"0.005", "0.01"}
    assert again == tables
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="one prediction study, not 0"):
        predict.main(["predict", f"--runs={tmp_path}/empty"])


def test_id_view_has_no_held_out_point(study: PredictionStudy) -> None:
    from tfcomp.datasets import make_dataset

    dataset = make_dataset(study.items[0].config)
    view = forget_held_out(dataset)
    known = dataset.splits.is_id
    np.testing.assert_array_equal(view.splits.grid, dataset.splits.grid[known])
    assert not view.splits.is_ood.any() and view.splits.existing is None


def test_half_is_held_back(study: PredictionStudy) -> None:
    grid = ("--grid=model=mlp,cnn", "--grid=width=4,8,16,32,64")
    every = make_study(study.folder, *grid)
    first = make_study(study.folder, *grid, "--confirm=false")
    assert every.settings.confirm and not first.settings.confirm
    known = [e.name for e in every.items if choose_half(e.setting) == "explore"]
    assert [item.name for item in first.items] == known
    assert len(every.items) == 10 and 1 <= len(known) <= 9


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--grid=width=4,8",), "--grid must vary model"),
        (("--grid=model=mlp", "--grid=region=none"), "--region must hold out"),
        (("--grid=model=nothing",), "--model must be"),
    ],
)
def test_mistakes(flags: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        make_study(tmp_path, *flags)
    assert not list(tmp_path.iterdir())
