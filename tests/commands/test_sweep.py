"""The sweep command: what it checks, what it writes, what it leaves alone."""

import csv
import math
import runpy
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

import tfcomp
from tests.sweeps.pool_here import PoolHere
from tfcomp import sweep
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.pool import Outcome
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.worker_task import Task

ROOT = Path(__file__).parents[2]
FAKE_SWEEP = ROOT / "tests" / "sweeps" / "fake_sweep.py"
WRITE_REPORTS = Sweep.write_reports
COMMAND = ("sweep", "--flagfile=smoke.flags", "--run_name=s")
Start = Callable[..., int]
POOL = PoolHere()


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts sweeps of trials that take no time, in an empty folder.

    Nothing is drawn, which would take longer than all the rest.
    """
    monkeypatch.chdir(tmp_path)
    fake = runpy.run_path(str(FAKE_SWEEP))
    monkeypatch.setattr(Sweep, "make_call", fake["make_call"])
    monkeypatch.setattr(sweep_run, "open_pool", lambda *_: nullcontext(POOL))
    monkeypatch.setattr(Sweep, "write_reports", lambda sweep: None)

    def main(*flags: str) -> int:
        POOL.ran.clear()
        return sweep.main([*COMMAND, *flags])

    return main


@pytest.fixture
def draw(start: Start, monkeypatch: pytest.MonkeyPatch) -> Start:
    """The same, with statistics and figures."""
    monkeypatch.setattr(Sweep, "write_reports", WRITE_REPORTS)
    return start


def read(name: str) -> list[dict[str, str]]:
    with open(f"tensorboard_logs/s/{name}", newline="") as file:
        return list(csv.DictReader(file))


def test_tables_of_a_sweep(start: Start, capsys: pytest.CaptureFixture) -> None:
    assert start("--grid=depth=2,3", "--seeds=2") == 0
    rows = read("trials.csv")
    settings = [row["depth"] + row["seed"] for row in rows]
    assert settings == ["20", "21", "30", "31"]
    assert " ".join(rows[0]) == (
        "trial status reason depth seed id_mse id_relative_mse ood_mse "
        "ood_hit_rate"
    )
    assert {row["status"] for row in rows} == {"finished"}
    assert float(rows[3]["ood_mse"]) == pytest.approx(1 / 4 + 0.03)
    assert [row["trial"] for row in rows] == POOL.ran
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("4 trials to run, 1 at a time; logs in ")
    assert printed[1].startswith("[1/4] depth=2 seed=0  1 s  (about ")
    assert "all in" in printed[4] and "SavedModel" not in str(printed)
    # Finished trials are kept, and are not exported afterwards.
    assert start("--grid=depth=2,3", "--seeds=2", "--export") == 0
    line = "no SavedModel of 4: tfcomp export --run=tensorboard_logs/s/trials/"
    assert line + rows[0]["trial"] in capsys.readouterr().out


def test_statistics_of_a_sweep(
    draw: Start, capsys: pytest.CaptureFixture
) -> None:
    """Fake trials write 1 / (1 + d) + 0.01 seed d."""
    assert draw("--grid=depth=2,3", "--seeds=3") == 0
    summary = {(r["depth"], r["score"]): r for r in read("summary.csv")}
    row = {**summary["3", "ood_mse"], "score": 0}
    found = {name: float(value) for name, value in row.items()}
    # Seeds give 0.25, 0.28, 0.31; Student's quantile for n = 3 is 4.3027. The
    # logarithm of a mean m has the standard error of m, divided by m.
    ratio = math.exp(4.3027 * 0.03 / 0.28 / 3**0.5)
    expected = {"depth": 3, "score": 0, "mean": 0.28, "sd": 0.03, "n": 3}
    expected |= {"low": 0.28 / ratio, "high": 0.28 * ratio}
    assert found == pytest.approx(expected, rel=1e-4)
    *_, head, two, three, _, page = capsys.readouterr().out.splitlines()
    assert page.endswith("s/report.html")
    names = ["id_relative_mse", "ood_relative_mse", "ood_hit_rate"]
    assert head.split() == names
    assert two.split() == "depth=2 0.353 ± 0.02 - 0.5 ± 0".split()
    assert three.split() == "depth=3 0.28 ± 0.03 - 0.5 ± 0".split()
    pairs = {row["score"]: row for row in read("paired.csv")}
    assert set(pairs) == {score for _, score in summary}
    pair = pairs["ood_mse"]
    assert (pair["depth_a"], pair["depth_b"], pair["n"]) == ("2", "3", "3")
    # 1/3 + 0.02 s against 1/4 + 0.03 s
    mean = 1 / 4 - 1 / 3 + 0.01
    assert float(pair["difference"]) == pytest.approx(mean)
    assert float(pair["sd"]) == pytest.approx(0.01)


def test_reports_are_made_again(draw: Start) -> None:
    draw("--grid=depth=2,3", "--seeds=2")
    folder = Path("tensorboard_logs/s")
    summary, figure = folder / "summary.csv", folder / "figures/scores.png"
    first = summary.read_bytes(), figure.read_bytes()
    summary.unlink()
    draw("--grid=depth=2", "--seeds=2")
    assert summary.read_bytes() != first[0]
    assert not (folder / "paired.csv").exists()  # nothing to compare
    draw("--grid=depth=2,3", "--seeds=2")
    assert (summary.read_bytes(), figure.read_bytes()) == first


def test_a_second_start_runs_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    start("--grid=depth=2,3")
    tables = {p: p.read_bytes() for p in Path().rglob("*.csv")}
    assert tables
    flags = Path("tensorboard_logs/s/sweep.flags")
    text = flags.read_text()
    flags.write_text("as it was")
    monkeypatch.setattr(sweep_run, "open_pool", None)  # nothing may be started
    assert start("--grid=depth=2,3") == 0
    assert {p: p.read_bytes() for p in Path().rglob("*.csv")} == tables
    assert flags.read_text() == text


@pytest.mark.parametrize("content", [b"{}", b"\xff", None])
def test_a_damaged_trial_is_run_again(
    content: bytes | None, start: Start
) -> None:
    start("--grid=depth=2,3", "--seeds=2")
    whole = read("trials.csv")
    trials = Path("tensorboard_logs/s/trials")
    first, second, *_ = POOL.ran
    if content is None:
        (trials / first / "model.keras").unlink()
        (trials / second / "model.keras").write_text("PK")
    else:
        (trials / first / "metrics.json").write_bytes(content)
        (trials / second / "metrics.json").write_bytes(content)
    assert start("--grid=depth=2,3", "--seeds=2") == 0
    assert POOL.ran == [first, second]
    assert read("trials.csv") == whole


class PoolThatStops(PoolHere):
    """Is told to stop after three trials."""

    def run(self, tasks: list[Task]) -> Iterator[Outcome]:
        yield from super().run(tasks[:3])
        raise KeyboardInterrupt


def test_tables_are_whole_when_a_sweep_is_told_to_stop(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_run, "PAUSE", 10**6)
    pool = nullcontext(PoolThatStops())
    monkeypatch.setattr(sweep_run, "open_pool", lambda *_: pool)
    with pytest.raises(KeyboardInterrupt):
        start("--grid=depth=2,3", "--seeds=2")
    statuses = [row["status"] for row in read("trials.csv")]
    assert statuses == [*["finished"] * 3, "missing"]


def test_more_seeds_and_another_order(start: Start) -> None:
    start("--grid=depth=2,3", "--grid=epochs=1,2")
    first = {row["trial"] for row in read("trials.csv")}
    assert start("--grid=epochs=2,1", "--grid=depth=4,3,2", "--seeds=2") == 0
    rows = read("trials.csv")
    assert len(rows) == 12
    assert set(POOL.ran) == {row["trial"] for row in rows} - first
    assert [row["epochs"] for row in rows[:6]] == ["2"] * 6
    # The first sweep is still all there.
    assert start("--grid=depth=2,3", "--grid=epochs=1,2") == 0
    assert POOL.ran == []
    assert {row["trial"] for row in read("trials.csv")} == first


def test_failures_do_not_stop_the_rest(
    start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("FAKE_FAILURE", "3")
    assert start("--grid=depth=2,3,4") == 1
    rows = read("trials.csv")
    assert [r["status"] for r in rows] == ["finished", "failed", "finished"]
    assert rows[1]["reason"] == "the loss is not finite"
    assert rows[1]["ood_mse"] == ""
    captured = capsys.readouterr()
    assert "FAILED: the loss is not finite" in captured.out
    expected = "failed  depth=3 seed=0: the loss is not finite\n"
    assert captured.err == expected
    monkeypatch.delenv("FAKE_FAILURE")
    assert start("--grid=depth=2,3,4") == 0  # only that one is run again
    assert POOL.ran == [rows[1]["trial"]]
    assert {row["status"] for row in read("trials.csv")} == {"finished"}


def test_flags_that_repeat_a_sweep(start: Start) -> None:
    grid = '--grid=region="box:x:3-5,y:2-4",corner:4'
    start(grid, "--grid=depth/width=2/8,3/9", "--seeds=2", "--first_seed=3")
    rows = read("trials.csv")
    assert {row["region"] for row in rows} == {"box:x:3-5,y:2-4", "corner:4"}
    status = sweep.main(["sweep", "--flagfile=tensorboard_logs/s/sweep.flags"])
    assert status == 0
    assert read("trials.csv") == rows
    # The same from Python.
    regions = ["box:x:3-5,y:2-4", "corner:4"]
    axes = {"region": regions, "depth/width": ["2/8", "3/9"]}
    numbers = {"seeds": 2, "first_seed": 3, "run_name": "s", "shard": "1/2"}
    POOL.ran.clear()
    folder = tfcomp.run_sweep("smoke", grid=axes, **numbers)
    assert POOL.ran == [] and folder == Path("tensorboard_logs/s")
    assert read("trials.csv") == rows


SHARDED = ("--grid=depth=2,3", "--seeds=3")
TABLES = ("trials.csv", "summary.csv", "paired.csv", "sweep.flags")


def read_tables(folder: str = "tensorboard_logs") -> dict[str, bytes]:
    return {name: Path(folder, "s", name).read_bytes() for name in TABLES}


def test_shards_run_all_trials_once_and_write_the_same_tables(
    draw: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_run, "MAX_DRAWN", 0)  # no figures, which are slow
    draw(*SHARDED)
    trials = list(POOL.ran)
    tables = read_tables()
    Path("tensorboard_logs").rename("whole")

    parts = {}
    for number in (2, 3, 1):
        assert draw(*SHARDED, f"--shard={number}/3") == 0
        parts[number] = list(POOL.ran)
    assert parts == {n: trials[n - 1 :: 3] for n in (1, 2, 3)}
    assert read_tables() == tables

    for flags in ((), ("--shard=2/3",), ("--shard=5/6",)):
        assert draw(*SHARDED, *flags) == 0
        assert POOL.ran == []
    assert read_tables() == tables


def test_tables_of_a_shard_have_what_is_finished(start: Start) -> None:
    start(*SHARDED, "--shard=2/3")
    metrics = f"tensorboard_logs/s/trials/{POOL.ran[0]}/metrics.json"
    Path(metrics).write_text("{}")
    start(*SHARDED, "--shard=1/3")
    statuses = [row["status"] for row in read("trials.csv")]
    assert statuses == "finished damaged missing".split() + (
        "finished finished missing".split()
    )


class PoolWithAnother(PoolHere):
    """Before its last trial ends, another shard does all of its work."""

    def __init__(self, other: Callable[[], int]) -> None:
        super().__init__()
        self._other = other

    def run(self, tasks: list[Task]) -> Iterator[Outcome]:
        *first, last = super().run(tasks)
        yield from first
        assert self._other() == 0
        yield last


def test_shards_at_the_same_time(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not lock each other out; without --shard it would be refused."""

    def start_other() -> int:
        monkeypatch.setattr(
            sweep_run, "open_pool", lambda *_: nullcontext(POOL)
        )
        return start(*SHARDED, "--shard=2/2")

    pool = PoolWithAnother(start_other)
    monkeypatch.setattr(sweep_run, "open_pool", lambda *_: nullcontext(pool))
    assert start(*SHARDED, "--shard=1/2") == 0
    assert len(pool.ran) == len(POOL.ran) == 3
    assert {row["status"] for row in read("trials.csv")} == {"finished"}


def test_failures_of_other_shards_stay_in_the_table(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FAILURE", "3")
    assert start("--grid=depth=2,3", "--shard=2/2") == 1
    assert start("--grid=depth=2,3", "--shard=1/2") == 0
    rows = read("trials.csv")
    assert [row["status"] for row in rows] == ["finished", "failed"]
    assert rows[1]["reason"] == "the loss is not finite"
    monkeypatch.delenv("FAKE_FAILURE")
    assert start("--grid=depth=2,3", "--shard=2/2") == 0
    assert {row["status"] for row in read("trials.csv")} == {"finished"}


@pytest.mark.parametrize("shard", ["0/3", "4/3", "a/b", "1/0", "/3", "1/", "2"])
def test_a_shard_that_does_not_exist(shard: str, start: Start) -> None:
    with pytest.raises(ConfigError, match="^--shard .*$"):
        start(f"--shard={shard}")
    assert list(Path().iterdir()) == []


def test_mistakes_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for flag in ("--grid=depht=2", "--seeds=0"):
        with pytest.raises((ConfigError, RunError), match="--(depht|seeds) "):
            sweep.main([*COMMAND, flag])
    assert list(tmp_path.iterdir()) == []


def test_a_single_run_is_not_a_sweep(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "tensorboard_logs" / "s"
    folder.mkdir(parents=True)
    (folder / "run.flags").write_text("--depth=2\n")
    with pytest.raises(RunError, match="--run_name must name a sweep"):
        start()
    assert [path.name for path in folder.iterdir()] == ["run.flags"]
