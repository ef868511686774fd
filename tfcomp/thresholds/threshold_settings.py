"""The flags of a threshold search, beside those of a run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from absl import flags

from tfcomp.config.run_flags import define_run_flags
from tfcomp.config.run_flags import define_settings
from tfcomp.config.settings import Settings
from tfcomp.config.settings import setting
from tfcomp.thresholds.criteria import parse_targets
from tfcomp.thresholds.lists import parse_sizes
from tfcomp.thresholds.lists import parse_variants


@dataclass(frozen=True)
class SearchSettings(Settings):
    """What is searched for; lists are separated by commas."""

    grid_sizes: str = setting("16,20,24,28,32", "Grid sizes N.")
    kinds: str = setting(
        "bumps,stripes_and_bumps",
        "Training sets: bumps (at continuous positions) and "
        "stripes_and_bumps (all 2 N stripes, and bumps on the grid).",
    )
    regions: str = setting(
        "",
        "Held-out regions, each with every kind; bounds are fractions of the "
        "side, as none, corner:0.5, square:0.25-0.75; quoted as in CSV where "
        "one has a comma. Empty: none for bumps, corner:0.5 for "
        "stripes_and_bumps.",
    )
    seeds: int = setting(3, "Searches of each kind and size.", minimum=1)
    first_seed: int = setting(
        0, "The first of the seeds, which are consecutive.", minimum=0
    )
    criterion: str = setting(
        "position_accuracy",
        "Scores that must reach a target: position_accuracy (at least), "
        "relative_mse (at most), or both.",
    )
    target: str = setting("0.95", "The target of each criterion.")
    steps: int = setting(
        400,
        "Optimizer steps of every training, whatever the amount of data.",
        minimum=1,
    )
    tolerance: float = setting(
        1.2,
        "Largest ratio of a threshold to a smaller number that fails.",
        above=1.0,
    )
    max_bumps: int = setting(
        0,
        "Most bumps to try; 0 is 4 for each cell of the grid. Bumps on the "
        "grid end with its ID cells in any case.",
        minimum=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Raises ConfigError for an ill-formed list.
        _ = self.sizes, self.variants, self.targets

    @property
    def sizes(self) -> list[int]:
        """The grid sizes."""
        return parse_sizes(self.grid_sizes)

    @property
    def variants(self) -> list[tuple[str, str]]:
        """Pairs of a kind and a region, in fractions of the side."""
        return parse_variants(self.kinds, self.regions)

    @property
    def targets(self) -> dict[str, float]:
        """Criterion to target."""
        return parse_targets(self.criterion, self.target)


def define_flags() -> flags.FlagValues:
    """The flags of a run and those of a search."""
    values = define_run_flags()
    values.set_default("run_name", "threshold")
    define_settings(dataclasses.fields(SearchSettings), values)
    return values


def make_settings(values: dict[str, Any]) -> SearchSettings:
    """The settings of a search among all flags.

    Raises:
        ConfigError: If a value breaks its rule.
    """
    names = [item.name for item in dataclasses.fields(SearchSettings)]
    return SearchSettings(**{name: values[name] for name in names})


def list_settings_flags(settings: SearchSettings) -> list[str]:
    """Arguments that describe the search."""
    named = dataclasses.asdict(settings).items()
    return [f"--{name}={value}" for name, value in named]
