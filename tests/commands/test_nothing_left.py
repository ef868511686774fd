"""Every command leaves the temporary files as they were, however it ends.

With `-s` the lists before and after each command are printed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
PATIENCE = 600  # seconds, for a machine that is busy
TINY = (
    "smoke --model=mlp --depth=1 --width=4 --grid_size=8 --region=square:3-5 "
    "--epochs=2 --steps_per_epoch=2 --eval_every=0 --layerwise_every=0 "
    "--nopictures --noexport --log_dir=logs"
)
SEARCH = "threshold_quick --grid_sizes=8 --steps=5 --log_dir=logs --workers=2"
COMMANDS = {
    "train": f"tfcomp train {TINY}",
    "sweep": f"tfcomp sweep {TINY} --run_name=s --seeds=4 --workers=2",
    "threshold": f"tfcomp study thresholds {SEARCH}",
    "study": "tfcomp study claims --runs=logs",
    "analyze": "tfcomp analyze logs/smoke",
    "pipeline": "pipelines.run_local --profile=smoke --workers=2",
}
# The same without an end, and what is there when work is under way.
ENDLESS = {
    "train": (f"{COMMANDS['train']} --epochs=100000", "logs/smoke/checkpoints"),
    "sweep": (f"{COMMANDS['sweep']} --epochs=100000", "logs/s/trials/*"),
    "threshold": (
        f"{COMMANDS['threshold']} --steps=1000000",
        "logs/threshold_quick/logs/*",
    ),
    "pipeline": (COMMANDS["pipeline"], "pipeline_runs/smoke/work/runs/*/*"),
}


@pytest.fixture
def place(working_folder: Path) -> Path:
    """An empty folder for temporary files, beside the working folder."""
    folder = working_folder / "temporary"
    folder.mkdir()
    return folder


def start(command: str, place: Path) -> subprocess.Popen:
    paths = [str(ROOT), *filter(None, sys.path)]
    return subprocess.Popen(
        [sys.executable, "-m", *command.split()],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "TMPDIR": str(place),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(command: str, place: Path) -> None:
    process = start(command, place)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def start_endless(
    name: str, place: Path
) -> tuple[subprocess.Popen, list[psutil.Process]]:
    """A command at work, and all the processes that it has started."""
    command, sign = ENDLESS[name]
    process = start(command, place)
    wait_for(lambda: [*place.parent.glob(sign)] or process.poll() is not None)
    assert process.poll() is None, process.communicate()[0]
    return process, psutil.Process(process.pid).children(recursive=True)


def show(name: str, how: str, before: list[str], place: Path) -> list[str]:
    after = sorted(os.listdir(place))
    print(f"{name:10} {how:28} before {before}  after {after}")
    return after


def test_after_the_end(place: Path) -> None:
    """In one folder, since some need what others have made."""
    for name, command in COMMANDS.items():
        before = sorted(os.listdir(place))
        finish(command, place)
        assert show(name, "ended", before, place) == []


@pytest.mark.parametrize("name", ENDLESS)
def test_after_a_stop(name: str, place: Path) -> None:
    process, children = start_endless(name, place)
    before = sorted(os.listdir(place))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert show(name, "told to stop", before, place) == []
    wait_for(lambda: not any(child.is_running() for child in children))


def test_after_the_workers_were_killed(place: Path) -> None:
    process = start(COMMANDS["sweep"], place)
    wait_for(lambda: [*place.parent.glob(ENDLESS["sweep"][1])])
    before = sorted(os.listdir(place))
    for child in psutil.Process(process.pid).children(recursive=True):
        if "spawn_main" in " ".join(child.cmdline()):  # not a trial of theirs
            child.kill()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    assert show("sweep", "workers killed", before, place) == []
