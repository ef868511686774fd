"""The flags of a threshold search, in addition to the flags of a run."""

import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass

from absl import flags

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_flags import define_run_flags, define_settings
from tfcomp.config.settings import setting
from tfcomp.sweeps.grid import MAX_SEEDS, SeedSettings, split_cells

ACCURACY, ERROR = CRITERIA = ("position_accuracy", "relative_mse")
# The default region of each kind: figure 4 holds out a corner for stripes, and
# compares them with bumps at all positions.
KINDS = {"bumps": "none", "stripes_and_bumps": "corner:0.5"}


@dataclass(frozen=True)
class SearchSettings(SeedSettings):
    """Quantities that are searched for, and the searches that are made."""

    grid_sizes: str = setting(
        "16,20,24,28,32",
        "The grid sizes N that are searched at, separated by commas.",
    )
    kinds: str = setting(
        "bumps,stripes_and_bumps",
        "Training sets: bumps at continuous positions, or stripes_and_bumps, "
        "all 2 N stripes and bumps on the grid.",
    )
    regions: str = setting(
        "",
        "Held-out regions, each searched with every kind, with bounds in "
        "fractions of the side, as corner:0.5 (with a comma, quoted as in "
        "CSV). By default none for bumps, corner:0.5 for stripes_and_bumps.",
    )
    seeds: int = setting(
        3,
        "The searches of every kind, region and size, each with its seed.",
        minimum=1,
        maximum=MAX_SEEDS,
    )
    criterion: str = setting(
        ACCURACY,
        "The scores that must reach a target, separated by commas: "
        "position_accuracy must be at least its target, relative_mse at most.",
    )
    target: str = setting(
        "0.95", "The target of each criterion, separated by commas."
    )
    steps: int = setting(
        400,
        "Optimizer steps of every training, unless --passes asks for more.",
        minimum=1,
    )
    passes: float = setting(
        0.0,
        "How often a training sees each example at least; 0 for --steps alone.",
        minimum=0.0,
        maximum=10_000,
    )
    tolerance: float = setting(
        1.2,
        "The largest ratio of the threshold to a smaller number that fails.",
        above=1.0,
    )
    max_bumps: int = setting(
        0,
        "The largest number of bumps that is tried; 0 for 4 for each cell. "
        "Bumps on the grid are at most one for each cell.",
        minimum=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # Raises ConfigError for an invalid list.
        _ = self.sizes, self.variants, self.targets

    @property
    def sizes(self) -> list[int]:
        parts = split_list("grid_sizes", self.grid_sizes)
        # Python reads no integer of 5,000 digits.
        if not all(part.isdecimal() and len(part) < 10 for part in parts):
            rule = "must be positive integers, separated by commas"
            raise ConfigError("grid_sizes", rule, self.grid_sizes)
        return [int(part) for part in parts]

    @property
    def variants(self) -> list[tuple[str, str]]:
        """Pairs of a kind and a region in fractions of the side."""
        kinds = split_list("kinds", self.kinds, KINDS)
        if not self.regions:
            return [(kind, KINDS[kind]) for kind in kinds]
        return [*itertools.product(kinds, split_list("regions", self.regions))]

    @property
    def targets(self) -> dict[str, float]:
        names = split_list("criterion", self.criterion, CRITERIA)
        try:
            numbers = map(float, self.target.split(","))
            targets = dict(zip(names, numbers, strict=True))
        except ValueError:
            targets = {}
        is_finite = all(0 < target < math.inf for target in targets.values())
        if not targets or not is_finite or targets.get(ACCURACY, 1.0) > 1:
            rule = "must have a number above 0 for each criterion, at most 1 "
            rule += f"for {ACCURACY}"
            raise ConfigError("target", rule, self.target)
        return targets


def define_search_flags() -> flags.FlagValues:
    """Returns the flags of a run and of a search."""
    values = define_run_flags()
    values.set_default("run_name", "threshold")
    define_settings(SearchSettings.list_settings(), values)
    return values


def is_reached(criterion: str, score: float | None, target: float) -> bool:
    """Checks a score against its target; None (diverged) does not reach."""
    if score is None:
        return False
    return score >= target if criterion == ACCURACY else score <= target


def split_list(flag: str, text: str, known: Collection[str] = ()) -> list[str]:
    """Returns the values of a list; ConfigError unless distinct and known."""
    values = split_cells(flag, text)
    if not values or not all(values) or len(set(values)) < len(values):
        rule = "must be different values, separated by commas"
        raise ConfigError(flag, rule, text)
    if known and not set(values).issubset(known):
        raise ConfigError(flag, f"must be among: {', '.join(known)}", text)
    return values
