"""The few-shot series: how many bumps does it take? (figures 4b, 7b)

    python -m tfcomp.few_shot --flagfile=stripes_and_bumps.flags

trains one network for each of `--counts` (stripes and that many bumps) and
draws what each makes of the same held-out positions.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tfcomp.config.command import exit_on_user_error
from tfcomp.config.command import run_command
from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import quiet_startup
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import define_run_flags
from tfcomp.config.run_flags import make_flags
from tfcomp.models.config_checks import check_config
from tfcomp.train import format_scores

FLAGS = {"counts": ("0,10,50,100", "Numbers of bumps, one run each.")}


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    values = make_flags(FLAGS, define_run_flags())
    return run_command(argv, __doc__, values, train_series)


def train_series(settings: dict[str, Any]) -> int:
    """Trains the series (finished runs are kept) and draws it."""
    counts = parse_counts(str(settings.pop("counts")))
    series = {n: make_member(make_config(settings), n) for n in counts}
    for config in series.values():
        check_config(config)
    with quiet_startup():
        from tfcomp.sweeps.few_shot_series import run_series
    folder, scores = run_series(series)
    print(format_scores(scores))
    print(f"\nfigure  {folder / 'few_shot.png'}")
    return 0


def parse_counts(text: str) -> list[int]:
    """`0,10,50` as integers.

    Raises:
        ConfigError: If one is no integer or negative, or there is none.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        rule = "must be integers of at least 0, separated by commas"
        raise ConfigError("counts", rule, text)
    return [int(part) for part in parts]


def make_member(config: RunConfig, num_bumps: int) -> RunConfig:
    """The run of the series with so many bumps."""
    data: Any = dataclasses.replace(config.data, num_bumps=num_bumps)
    name = f"{config.run_name}_{num_bumps}"
    return dataclasses.replace(config, run_name=name, data=data, resume=True)


if __name__ == "__main__":
    exit_on_user_error(main)
