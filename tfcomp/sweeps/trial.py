"""One trial, as a process of its own: `python -m tfcomp.sweeps.trial FLAGS`.

Trains and scores a run, or goes on with it, or does nothing if it is
finished; with `--measure` the numbers of the claims follow.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from tfcomp.config.command import exit_on_user_error
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import define_run_flags
from tfcomp.config.run_flags import make_flags
from tfcomp.config.run_flags import parse_flags
from tfcomp.models.config_checks import check_config


def main(argv: list[str]) -> int:
    """Runs one trial; the flags are those of a training."""
    values = define_run_flags()
    define_measure(values)
    settings = parse_flags(argv[1:], values)
    measure = settings.pop("measure")
    config = make_config(settings | {"resume": True})
    check_config(config)
    with quiet_startup():
        from tfcomp.training.experiment import train_and_evaluate

    train_and_evaluate(config)
    if measure:
        from tfcomp.evaluation.measures import measure_run

        measure_run(Path(config.run_dir))
    return 0


def define_measure(values: flags.FlagValues) -> None:
    """The flag `--measure`, of a trial as of a sweep."""
    text = "Also compute the numbers of the paper's claims, measures.json."
    make_flags({"measure": (False, text)}, values)


if __name__ == "__main__":
    exit_on_user_error(main)
