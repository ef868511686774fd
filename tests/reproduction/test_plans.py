"""Plans of studies, and a plan that is interrupted."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from reproduction import FLAGFILES
from reproduction.command import main
from reproduction.plans import PLANS, list_works
from tests.sweeps.pool_here import PoolHere
from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import SUFFIX
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.pool import Outcome
from tfcomp.sweeps.worker_task import Task

pytestmark = pytest.mark.usefixtures("untraced")

FLAGS = """--flagfile=smoke.flags
--run_name=tiny
--seeds=2
--model=mlp
--depth=1
--width=4
--grid_size=8
--region=square:3-4
--epochs=1
--steps_per_epoch=2
--eval_every=0
--layerwise_every=0
--pictures=false
--export=false
--measure
"""


def test_every_plan_names_shipped_flagfiles() -> None:
    patterns = [pattern for plan in PLANS.values() for pattern in plan]

    assert len(patterns) > 10
    for pattern in patterns:
        assert list(FLAGFILES.glob(f"{pattern}{SUFFIX}")), pattern


def test_a_plan_is_listed(
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
) -> None:
    assert main("claims", ["claims", "--plan", f"--log_dir={tmp_path}"]) == 0

    table = capsys.readouterr().out
    assert "| hard_given | 20 | 0 |" in table
    assert "| threshold_donut | 24 | 0 |" in table
    assert list(tmp_path.iterdir()) == []  # nothing was written


def test_a_plan_of_no_flagfile() -> None:
    with pytest.raises(RunError, match="no_such"):
        list_works(["no_such"])


class PoolThatStops(PoolHere):
    """Is told to stop after one trial."""

    def run(self, tasks: list[Task]) -> Iterator[Outcome]:
        yield from super().run(tasks[:1])
        raise KeyboardInterrupt


def test_an_interrupted_plan_goes_on(
    working_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bits of trials that are killed are compared in the tests of sweeps."""
    Path("tiny.flags").write_text(FLAGS)
    monkeypatch.setattr(sweep_run.Sweep, "write_reports", lambda sweep: None)
    monkeypatch.setitem(PLANS, "decoders", ["tiny.flags"])

    def follow(pool: PoolHere) -> int:
        monkeypatch.setattr(
            sweep_run, "open_pool", lambda *_: nullcontext(pool)
        )
        flags = ["--run", "--log_dir=logs", "--output=report"]
        return main("decoders", ["decoders", *flags])

    with pytest.raises(KeyboardInterrupt):
        follow(PoolThatStops())
    rest = PoolHere()
    assert follow(rest) == 0
    nothing = PoolHere()
    assert follow(nothing) == 0

    assert len(rest.ran) == 1
    assert nothing.ran == []
    assert Path("report/decoders.csv").exists()
