"""What jobs of SLURM go through, with a real one on this machine, as root.

    apt-get install slurm-wlm munge && pip install 'tfcomp[cluster]'
    python -m benchmarks.slurm FOLDER
    python -m benchmarks.slurm FOLDER scancel limit

Every event is a sweep whose jobs meet it: `twelve` trials in three jobs, a job
that somebody cancels (`scancel`), one that reaches its time `limit`, a node
that is drained and fails (`drain`), a `controller` that is killed and comes
back, and a command that is interrupted (`interrupt`), told to stop (`stop`) or
killed (`kill`) while jobs wait. What the queue shows is printed as it changes.
At the end the tables must be those of a sweep on this machine, to the byte, the
queue must be empty and no process may be left.
"""

from __future__ import annotations

import contextlib
import csv
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.slurm_lab import (
    NODES,
    Slurm,
    find_missing,
    find_processes,
    start_slurm,
    wait_for,
)

SHORT = ("sweep_smoke", "--seeds=6")
# Saves at the end of every epoch that takes a second.
LONG = (
    "smoke",
    "--run_name=long",
    "--grid_size=8",
    "--region=square:2-5",
    "--layerwise_every=0",
    "--eval_every=50",
    "--checkpoint_seconds=1",
)
EPOCHS = 80  # of a long one, which takes a quarter of a minute or more
LONGER = 90.0  # seconds: more than the time limit of a job
JOBS = ("--cluster=slurm", "--job_memory=1GB")
TABLES = ("trials.csv", "layers.csv", "summary.csv", "paired.csv")
PATIENCE = 900.0  # seconds, for a sweep on a busy machine


@dataclass
class Sweep:
    """A sweep in a process of its own.

    Attributes:
        flags: Its flags, without those of its place and its jobs.
        folder: What it writes.
        slurm: Where its jobs run; None is this machine.
        minutes: A time limit that its trials reach.
        seen: What the queue has shown, with the seconds at which it changed.
    """

    flags: tuple[str, ...]
    folder: Path
    slurm: Slurm | None = None
    minutes: int = 1
    seen: list[tuple[float, str]] = field(default_factory=list)
    begin: float = field(default_factory=time.monotonic)

    def start(self, *flags: str) -> subprocess.Popen:
        """Starts its command, whose output goes to a file."""
        program = [sys.executable, "-m", "tfcomp", "sweep"]
        place = f"--log_dir={self.folder}"
        self.folder.mkdir(exist_ok=True)
        with open(self.folder / "output", "ab") as output:
            return subprocess.Popen(
                [*program, *self.flags, place, *flags],
                env=self.slurm and self.slurm.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def end(self, process: subprocess.Popen) -> int:
        """Waits for its command; returns the exit status."""
        self.watch(lambda: process.poll() is not None)
        return process.returncode

    def watch(self, condition: Callable[[], object]) -> None:
        """Writes down what the queue shows until a condition holds."""

        def look() -> object:
            self.note(describe_queue(self.slurm) if self.slurm else "")
            return condition()

        wait_for(look, PATIENCE)

    def note(self, line: str) -> None:
        """Writes down a line, unless it is the last one."""
        if line and line != next((seen for _, seen in self.seen[::-1]), ""):
            seconds = time.monotonic() - self.begin
            self.seen.append((seconds, line))
            print(f"{seconds:6.0f} s  {line}", flush=True)

    def find_checkpoints(self) -> list[Path]:
        """Checkpoints of its trials."""
        return list(self.folder.glob("*/trials/*/checkpoints/*.index"))

    def find_finished(self) -> list[Path]:
        """Scores of its trials."""
        return list(self.folder.glob("*/trials/*/metrics.json"))

    def read_tables(self) -> dict[str, bytes]:
        """Its tables, and the losses of all epochs of all trials."""
        paths = [
            *self.folder.glob("*/*.csv"),
            *self.folder.rglob("history.csv"),
        ]
        kept = [p for p in paths if p.name in (*TABLES, "history.csv")]
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in kept}


def describe_queue(slurm: Slurm) -> str:
    """All jobs in one line."""
    jobs = slurm.list_jobs()
    if jobs is None:
        return "no answer"
    found = [f"{n} {state.lower()} {node}".strip() for n, state, node in jobs]
    return ", ".join(found) or "no job"


def run_twelve(sweep: Sweep) -> None:
    """Twelve trials in three jobs."""
    assert sweep.end(sweep.start(*JOBS, "--workers=3")) == 0


def run_scancel(sweep: Sweep) -> None:
    """Somebody cancels a job in which a trial is on its way."""
    process = sweep.start(*JOBS, "--workers=2")
    sweep.watch(sweep.find_checkpoints)
    job = sweep.slurm.list_jobs()[0][0]
    sweep.note(f"$ scancel {job}")
    sweep.slurm.ask("scancel", job)
    assert sweep.end(process) == 0
    assert "JobState=CANCELLED" in show_job(sweep, job)


def run_limit(sweep: Sweep) -> None:
    """A trial takes longer than its job may."""
    time_limit = f"--job_time=0:{sweep.minutes:02}:00"
    process = sweep.start(*JOBS, "--workers=1", time_limit)
    assert sweep.end(process) == 0
    assert "JobState=TIMEOUT" in show_job(sweep)


def run_drain(sweep: Sweep) -> None:
    """A node is drained, and fails; its trial goes on on another."""
    process = sweep.start(*JOBS, "--workers=1")
    sweep.watch(sweep.find_checkpoints)
    set_node(sweep, NODES[0], "drain")
    set_node(sweep, NODES[0], "down")
    assert sweep.end(process) == 0
    nodes = {line.split()[-1] for _, line in sweep.seen if "running" in line}
    assert nodes == set(NODES), nodes
    set_node(sweep, NODES[0], "resume")


def run_controller(sweep: Sweep) -> None:
    """slurmctld is killed, a worker too; slurmctld is started again."""
    slurm = sweep.slurm
    process = sweep.start(*JOBS, "--workers=2")
    sweep.watch(sweep.find_checkpoints)
    sweep.note("$ kill -9 SLURMCTLD")
    slurm.kill("slurmctld")
    worker = find_workers(slurm)[0]
    sweep.note("$ kill -9 WORKER")
    worker.kill()
    sweep.watch(lambda: "trying again" in read_output(sweep))
    sweep.note("$ slurmctld")
    slurm.start("slurmctld")
    assert sweep.end(process) == 0


def run_interrupted(sweep: Sweep, number: int, status: int) -> None:
    """The command ends while jobs run and wait, and is started again."""
    process = sweep.start(*JOBS, "--workers=6")
    sweep.watch(lambda: "pending" in describe_queue(sweep.slurm))
    sweep.watch(sweep.find_checkpoints)
    sweep.note(f"$ kill -{number}")
    process.send_signal(number)
    assert sweep.end(process) == status
    end = time.monotonic()
    sweep.watch(lambda: sweep.slurm.list_jobs() == [])
    sweep.watch(lambda: not find_workers(sweep.slurm))
    sweep.note(f"no job and no worker {time.monotonic() - end:.0f} s later")
    assert sweep.end(sweep.start(*JOBS, "--workers=4")) == 0


def run_interrupt(sweep: Sweep) -> None:
    """Ctrl-C."""
    run_interrupted(sweep, signal.SIGINT, 130)


def run_stop(sweep: Sweep) -> None:
    """The command is told to stop."""
    run_interrupted(sweep, signal.SIGTERM, 143)


def run_kill(sweep: Sweep) -> None:
    """The command is killed, and can cancel nothing."""
    run_interrupted(sweep, signal.SIGKILL, -signal.SIGKILL)


def show_job(sweep: Sweep, job: str = "1") -> str:
    """What `scontrol show job` says."""
    if job == "1":  # the first one of this sweep
        words = next(line for _, line in sweep.seen if "running" in line)
        job = words.split()[0]
    return sweep.slurm.ask("scontrol", "show", "job", job)


def set_node(sweep: Sweep, node: str, state: str) -> None:
    """Sets the state of a node."""
    command = ("scontrol", "update", f"nodename={node}", f"state={state}")
    sweep.note(f"$ {' '.join(command)}")
    sweep.slurm.ask(*command, "reason=test")


def find_workers(slurm: Slurm) -> list:
    """The workers and trials of jobs."""
    found = find_processes({"SLURM_CONF": slurm.environment["SLURM_CONF"]})
    return [
        process
        for process in found
        if any("tfcomp" in word for word in process.cmdline())
        and "SLURM_JOB_ID" in process.environ()
    ]


def read_output(sweep: Sweep) -> str:
    """What its command has printed."""
    return (sweep.folder / "output").read_text("utf-8")


EVENTS: dict[str, tuple[Callable[[Sweep], None], str]] = {
    "twelve": (run_twelve, "short"),
    "scancel": (run_scancel, "long"),
    "limit": (run_limit, "longer"),
    "drain": (run_drain, "long"),
    "controller": (run_controller, "long"),
    "interrupt": (run_interrupt, "short"),
    "stop": (run_stop, "short"),
    "kill": (run_kill, "short"),
}


class Lab:
    """Events on one SLURM, each with what a sweep on this machine gives.

    Args:
        slurm: That runs.
        folder: For the sweeps.
    """

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self.slurm = slurm
        self.folder = folder
        self._expected: dict[str, dict[str, bytes]] = {}
        self._flags: dict[str, tuple[str, ...]] = {}
        self._minutes = 1

    def run(self, event: str) -> Sweep:
        """Has a sweep meet an event; returns it.

        Raises:
            AssertionError: If something is not as it must be.
        """
        act, length = EVENTS[event]
        print(f"\n{event}: {act.__doc__}")
        expected = self._train_here(length)
        place = self.folder / event
        sweep = Sweep(self._flags[length], place, self.slurm, self._minutes)
        sweep.begin = time.monotonic()
        act(sweep)
        tables = sweep.read_tables()
        assert tables == expected, sorted(tables)
        assert self.slurm.list_jobs() == []
        assert not find_workers(self.slurm)
        sweep.note(f"{len(tables)} tables equal, no job, no process")
        return sweep

    def _make_flags(self, length: str) -> tuple[str, ...]:
        if length == "short":
            return SHORT
        if length == "long":
            return (*LONG, "--seeds=2", f"--epochs={EPOCHS}")
        self._train_here("long")
        seconds = measure_epoch(self.folder / "here_long/long/timings.csv")
        return (*LONG, f"--epochs={round(LONGER / seconds)}")

    def _train_here(self, length: str) -> dict[str, bytes]:
        if length not in self._expected:
            flags = self._make_flags(length)
            sweep = Sweep(flags, self.folder / f"here_{length}")
            assert sweep.end(sweep.start("--workers=2", "--threads=1")) == 0
            if length == "longer":  # two thirds of it, with its start
                taken = time.monotonic() - sweep.begin
                self._minutes = max(1, int(taken / 90))
            self._flags[length] = flags
            self._expected[length] = sweep.read_tables()
        return self._expected[length]


def measure_epoch(timings: Path) -> float:
    """Seconds of an epoch, by the table of a sweep."""
    with open(timings, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return min(float(row["seconds"]) / int(row["epochs"]) for row in rows)


@contextlib.contextmanager
def open_lab(folder: Path) -> Iterator[Lab]:
    """A lab in a folder."""
    with start_slurm(folder / "slurm") as slurm:
        yield Lab(slurm, folder)


def main() -> int:
    """Runs the events that are named, or all."""
    if missing := find_missing():
        print(missing)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    folder, *names = sys.argv[1:]
    place = Path(folder).absolute()
    place.mkdir(parents=True, exist_ok=True)
    with open_lab(place) as lab:
        for name in names or EVENTS:
            lab.run(name)
            print(read_output(Sweep((), place / name)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
