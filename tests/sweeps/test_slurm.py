"""Sweeps as jobs of a real SLURM, which is started for these tests.

What each event must do is asserted in `benchmarks.slurm`: tables equal to the
byte to those of a sweep on this machine, an empty queue, no process left.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.slurm import EVENTS, Lab, Sweep, find_workers, open_lab
from benchmarks.slurm_lab import find_missing, find_processes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(find_missing()), reason=find_missing()),
    pytest.mark.timeout(3600),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("slurm")
    with open_lab(folder) as lab:
        yield lab
    conf = {"SLURM_CONF": lab.slurm.environment["SLURM_CONF"]}
    assert not find_processes(conf)
    assert not (folder / "slurm").exists()


def test_a_job_that_stays_is_found(lab: Lab) -> None:
    """What the events assert at their ends can fail."""
    code = "import time; time.sleep(600) # tfcomp"
    lab.slurm.ask("sbatch", "-o", "/dev/null", f"--wrap=python3 -c '{code}'")
    sweep = Sweep((), Path(), lab.slurm)
    sweep.watch(lambda: find_workers(lab.slurm))
    assert lab.slurm.list_jobs()
    lab.slurm.ask("scancel", lab.slurm.list_jobs()[0][0])
    sweep.watch(lambda: lab.slurm.list_jobs() == [])
    sweep.watch(lambda: not find_workers(lab.slurm))


@pytest.mark.parametrize("event", EVENTS)
def test_an_event(event: str, lab: Lab) -> None:
    lab.run(event)
