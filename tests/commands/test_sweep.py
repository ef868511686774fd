"""The sweep command: what it checks, what it writes, what it leaves alone."""

import csv
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tfcomp
from tests.sweeps.fake_sweep import use_fake_trials, use_pool
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.pool import Outcome
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.worker_task import Task

ROOT = Path(__file__).parents[2]
WRITE_REPORTS = Sweep.write_reports
COMMAND = ["sweep", "--flagfile=smoke.flags", "--run_name=s"]
DEPTHS = "--grid=depth=2,3"
FOLDER = Path("tensorboard_logs/s")
TABLES = ["trials.csv", "summary.csv", "paired.csv", "sweep.flags"]
Start = Callable[..., int]
POOL = PoolHere()


@pytest.fixture
def start(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts sweeps of trials that take no time, in an empty folder.

    Nothing is drawn, which would take longer than all the rest.
    """
    use_fake_trials(monkeypatch, POOL)

    def main(*flags: str) -> int:
        POOL.ran.clear()
        return sweep.main([*COMMAND, *flags])

    return main


@pytest.fixture
def draw(
    start: Start,
    no_pdf: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Start:
    """The same, with statistics and figures."""
    monkeypatch.setattr(Sweep, "write_reports", WRITE_REPORTS)
    return start


def read(name: str = "trials.csv") -> list[dict[str, str]]:
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def read_statuses() -> list[str]:
    return [row["status"] for row in read()]


def read_tables() -> dict[str, bytes]:
    return {name: (FOLDER / name).read_bytes() for name in TABLES}


def test_tables_of_a_sweep(start: Start, capsys: pytest.CaptureFixture):
    assert start(DEPTHS, "--seeds=2") == 0

    rows = read()
    settings = [row["depth"] + row["seed"] for row in rows]
    assert settings == ["20", "21", "30", "31"]
    assert list(rows[0]) == [
        "trial",
        "status",
        "reason",
        "depth",
        "seed",
        "id_mse",
        "id_relative_mse",
        "ood_mse",
        "ood_hit_rate",
    ]
    assert read_statuses() == ["finished"] * 4
    assert float(rows[3]["ood_mse"]) == pytest.approx(1 / 4 + 0.03)
    assert [row["trial"] for row in rows] == POOL.ran
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("4 trials to run")
    assert lines[1].startswith("[1/4] depth=2 seed=0")


def test_statistics_of_a_sweep(
    draw: Start,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
):
    """Fake trials write 1 / (1 + d) + 0.01 seed d."""
    monkeypatch.setattr(sweep_run, "MAX_DRAWN", 0)  # figures are slow

    assert draw(DEPTHS, "--seeds=3") == 0

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    head = "relative MSE, trained relative MSE, held out hit rate, held out"
    assert head.split() in lines
    assert "depth=2 0.353 ± 0.02 - 0.5 ± 0".split() in lines
    assert "depth=3 0.28 ± 0.03 - 0.5 ± 0".split() in lines
    pairs = {row["score"]: row for row in read("paired.csv")}
    assert set(pairs) == {row["score"] for row in read("summary.csv")}
    difference = float(pairs["ood_mse"]["difference"])
    assert difference == pytest.approx(1 / 4 - 1 / 3 + 0.01)
    assert float(pairs["ood_mse"]["sd"]) == pytest.approx(0.01)


def test_reports_are_made_again(
    draw: Start,
    monkeypatch: pytest.MonkeyPatch,
):
    summary = FOLDER / "summary.csv"
    figure = FOLDER / "figures/scores.png"
    draw(DEPTHS, "--seeds=2")
    before = [summary.read_bytes(), figure.read_bytes()]

    with monkeypatch.context() as patch:
        patch.setattr(sweep_run, "MAX_DRAWN", 0)  # figures are slow
        draw("--grid=depth=2", "--seeds=2")
    assert summary.read_bytes() != before[0]
    assert not (FOLDER / "paired.csv").exists()  # nothing to compare
    assert not figure.exists()

    draw(DEPTHS, "--seeds=2")
    assert [summary.read_bytes(), figure.read_bytes()] == before


def test_a_second_start_runs_nothing(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
):
    start(DEPTHS)
    table = read()
    flags = FOLDER / "sweep.flags"
    text = flags.read_text()
    flags.write_text("damaged")
    monkeypatch.setattr(sweep_run, "open_pool", None)

    assert start(DEPTHS) == 0

    assert read() == table
    assert flags.read_text() == text

    # Finished trials are not exported afterwards.
    assert start(DEPTHS, "--export") == 0
    trial = FOLDER / "trials" / table[0]["trial"]
    assert f"tfcomp export --run={trial}" in capsys.readouterr().out


def test_damaged_trials_are_run_again(start: Start):
    start(DEPTHS)
    table = read()
    trials = list(POOL.ran)
    first, second = trials
    (FOLDER / "trials" / first / "metrics.json").write_text("{}")
    (FOLDER / "trials" / second / "model.keras").unlink()

    assert start(DEPTHS) == 0

    assert POOL.ran == trials
    assert read() == table


def test_more_seeds_and_another_order(start: Start):
    start(DEPTHS, "--grid=epochs=1,2")
    first = set(POOL.ran)

    assert start("--grid=epochs=2,1", "--grid=depth=4,3,2", "--seeds=2") == 0
    rows = read()
    assert len(rows) == 12
    assert set(POOL.ran) == {row["trial"] for row in rows} - first
    assert [row["epochs"] for row in rows[:6]] == ["2"] * 6

    assert start(DEPTHS, "--grid=epochs=1,2") == 0
    assert POOL.ran == []
    assert {row["trial"] for row in read()} == first


def test_failures_do_not_stop_the_rest(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
):
    monkeypatch.setenv("FAKE_FAILURE", "3")
    assert start("--grid=depth=2,3,4") == 1
    failed = read()[1]
    assert read_statuses() == ["finished", "failed", "finished"]
    assert failed["reason"] == "the loss is not finite"
    assert failed["ood_mse"] == ""
    (line,) = capsys.readouterr().err.splitlines()
    assert "depth=3 seed=0: the loss is not finite" in line

    monkeypatch.delenv("FAKE_FAILURE")
    assert start("--grid=depth=2,3,4") == 0
    assert POOL.ran == [failed["trial"]]
    assert read_statuses() == ["finished"] * 3


@pytest.fixture
def fake_program(monkeypatch: pytest.MonkeyPatch):
    """Lets `run_sweep` start a program of trials that take no time."""
    popen = subprocess.Popen

    def start_fake(command: list[str], **options: Any) -> subprocess.Popen:
        python, _, program, *flags = command
        assert program == "tfcomp.sweep"
        return popen(
            [python, "-m", "tests.sweeps.fake_sweep", *flags], **options
        )

    monkeypatch.setattr(subprocess, "Popen", start_fake)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


@pytest.mark.usefixtures("fake_program")
def test_flags_that_repeat_a_sweep(start: Start):
    regions = ["box:x:3-5,y:2-4", "corner:4"]
    start(
        '--grid=region="box:x:3-5,y:2-4",corner:4',
        "--grid=depth/width=2/8,3/9",
        "--first_seed=3",
    )
    rows = read()
    assert {row["region"] for row in rows} == set(regions)

    assert sweep.main(["sweep", f"--flagfile={FOLDER}/sweep.flags"]) == 0
    assert read() == rows

    # The same from Python.
    POOL.ran.clear()
    folder = tfcomp.run_sweep(
        "smoke",
        grid={"region": regions, "depth/width": ["2/8", "3/9"]},
        first_seed=3,
        run_name="s",
        shard="1/2",
    )
    assert folder == FOLDER
    assert POOL.ran == []
    assert read() == rows


SHARDED = [DEPTHS, "--seeds=3"]


def test_shards_run_all_trials_once_and_write_the_same_tables(
    draw: Start,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sweep_run, "MAX_DRAWN", 0)  # figures are slow
    draw(*SHARDED)
    trials = list(POOL.ran)
    tables = read_tables()
    FOLDER.rename("whole")

    for number in (2, 3, 1):
        assert draw(*SHARDED, f"--shard={number}/3") == 0
        assert POOL.ran == trials[number - 1 :: 3]
    assert read_tables() == tables

    for flags in ([], ["--shard=2/3"], ["--shard=5/6"]):
        assert draw(*SHARDED, *flags) == 0
        assert POOL.ran == []
    assert read_tables() == tables


def test_tables_of_a_shard_have_what_is_finished(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("FAKE_FAILURE", "3")
    assert start(DEPTHS, "--seeds=2", "--shard=2/4") == 0
    metrics = FOLDER / "trials" / POOL.ran[0] / "metrics.json"
    metrics.write_text("{}")
    assert start(DEPTHS, "--seeds=2", "--shard=3/4") == 1

    assert start(DEPTHS, "--seeds=2", "--shard=1/4") == 0
    statuses = ["finished", "damaged", "failed", "missing"]
    assert read_statuses() == statuses
    damaged = read()[1]
    assert "no scores" in damaged["reason"]

    monkeypatch.delenv("FAKE_FAILURE")
    assert start(DEPTHS, "--seeds=2", "--shard=3/4") == 0
    statuses[2] = "finished"
    assert read_statuses() == statuses


class PoolWithAnother(PoolHere):
    """Before its last trial ends, another shard does all of its work."""

    def __init__(self, other: Callable[[], int]):
        super().__init__()
        self._other = other

    def run(self, tasks: list[Task]) -> Iterator[Outcome]:
        *first, last = super().run(tasks)
        yield from first
        assert self._other() == 0
        yield last


def test_shards_at_the_same_time(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
):
    """They do not lock each other out; without --shard it would be refused."""

    def start_other() -> int:
        use_pool(monkeypatch, POOL)
        return start(*SHARDED, "--shard=2/2")

    pool = PoolWithAnother(start_other)
    use_pool(monkeypatch, pool)

    assert start(*SHARDED, "--shard=1/2") == 0

    assert len(pool.ran) == len(POOL.ran) == 3
    assert read_statuses() == ["finished"] * 6


@pytest.mark.parametrize(
    "flag",
    [
        "--shard=0/3",
        "--shard=4/3",
        "--shard=a/b",
        "--shard=1/0",
        "--shard=/3",
        "--shard=1/",
        "--shard=2",
        "--seeds=0",
        "--grid=depht=2",
    ],
)
def test_mistakes_write_nothing(flag: str, start: Start):
    with pytest.raises((ConfigError, RunError)):
        start(flag)

    assert list(Path().iterdir()) == []


def test_a_single_run_is_not_a_sweep(start: Start):
    FOLDER.mkdir(parents=True)
    (FOLDER / "run.flags").write_text("--depth=2\n")

    with pytest.raises(RunError, match="--run_name"):
        start()

    assert [path.name for path in FOLDER.iterdir()] == ["run.flags"]
