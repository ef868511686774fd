"""The shipped sweeps: all their trials are valid, and as many as they say."""

import pytest

from tfcomp import sweep
from tfcomp.config.flagfiles import list_flagfiles
from tfcomp.config.run_flags import parse_flags
from tfcomp.sweeps.sweep_run import Sweep

NUM_TRIALS = {
    "sweep_ablation.flags": 60,
    "sweep_depth.flags": 50,
    "sweep_encodings.flags": 80,
    "sweep_hard_rendering.flags": 40,
    "sweep_mlp_depth.flags": 50,
    "sweep_smoke.flags": 4,
    "sweep_stripes.flags": 20,
}


def make(name: str) -> Sweep:
    flags = parse_flags([f"--flagfile={name}"], sweep.define_flags())
    return sweep.make_sweep(flags)


def test_all_are_known() -> None:
    shipped = {n for n in list_flagfiles() if n.startswith("sweep_")}
    assert shipped == set(NUM_TRIALS)


@pytest.mark.parametrize("name", list(NUM_TRIALS))
def test_trials(name: str, capsys: pytest.CaptureFixture) -> None:
    found = make(name)
    assert len(found.items) == NUM_TRIALS[name]
    assert len({trial.name for trial in found.items}) == NUM_TRIALS[name]
    assert found.folder.name == name.removesuffix(".flags")
    assert capsys.readouterr().out == ""  # no region hides a value
