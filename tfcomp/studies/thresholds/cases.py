"""The searches of a command, and the trainings that each may ask for.

A case is one search: a kind of training set, a region, a grid size, a seed.
The seed is that of everything random: which bumps are drawn, the initial
weights, the order of the batches.
"""

import dataclasses
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.config.settings import LARGEST
from tfcomp.datasets import make_dataset
from tfcomp.datasets.regions import split_region
from tfcomp.studies.records import Records
from tfcomp.studies.thresholds.search import (
    Found,
    Limits,
    dither,
    find_threshold,
)
from tfcomp.studies.thresholds.threshold_settings import (
    SearchSettings,
    is_reached,
)
from tfcomp.sweeps.grid import MAX_ITEMS

# The largest number of bumps for a cell of the grid, unless a flag says so.
MAX_DENSITY = 4
# Flags of a run that have no effect on a search, and what to give instead.
DECIDED = {
    "region": "--regions",
    "grid_size": "--grid_sizes",
    "seed": "--first_seed",
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Digits after the point of a scaled bound, in pixels.
_DIGITS = 6
# What trains a search's networks and reads their scores.
TRIAL = "tfcomp.studies.thresholds.threshold_trial"

Scores = dict[str, float | None]


class MissingError(LookupError):
    """A training that a search needs has not been done."""


class Evaluations(Records):
    """Recorded scores.

    Targets decide no name, so another target or a finer tolerance asks only
    for trainings that have not been done.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [TRIAL])

    @classmethod
    def of(cls, base: RunConfig) -> "Evaluations":
        """Those of a command, given a run that has its name."""
        return cls(Path(base.run_dir) / "evaluations")

    def get_scores(self, config: RunConfig) -> Scores:
        """Scores of a training.

        Raises:
            MissingError: If it has not been done, or its file is damaged.
        """
        record = self.read(config) or {}
        if "scores" not in record:
            raise MissingError(self.locate(config).name)
        return dict(record["scores"])

    def write_scores(
        self, config: RunConfig, scores: Scores, seconds: float
    ) -> None:
        """Records the scores of a training in one step."""
        flags = config.identity()
        record = {"flags": flags, "scores": scores, "seconds": seconds}
        self.write(config, record)


@dataclass(frozen=True)
class Case:
    """One search.

    Attributes:
        kind: `bumps` or `stripes_and_bumps`.
        region: Held-out region with bounds in fractions of the side.
        base: The run whose flags hold for everything else.
    """

    kind: str
    region: str
    grid_size: int
    seed: int
    base: RunConfig
    settings: SearchSettings

    @property
    def name(self) -> str:
        """A name without characters that mean something to a file system."""
        region = "".join(c if c.isalnum() else "_" for c in self.region)
        return f"{self.kind}-{region}-n{self.grid_size}-s{self.seed}"

    def describe(self) -> str:
        """The case in one line."""
        return (
            f"{self.kind} region={self.region} N={self.grid_size} "
            f"seed={self.seed}"
        )

    def make_config(self, num_bumps: int) -> RunConfig:
        """The training with so many bumps.

        Its number of steps depends on them if `--passes` says so, and it is
        scored everywhere. Flags that decide when a run is scored and saved
        have their defaults, since they make no difference here and must not
        give the training another name.
        """
        fresh = RunConfig()
        base = dataclasses.replace(
            self.base,
            eval_every=fresh.eval_every,
            eval_points=LARGEST[int],
            layerwise_every=fresh.layerwise_every,
            checkpoint_seconds=fresh.checkpoint_seconds,
        )
        is_alone = self.kind == "bumps"
        data = dataclasses.replace(
            base.data,
            grid_size=self.grid_size,
            region=scale_region(self.region, self.grid_size),
            dataset="gaussian_bumps" if is_alone else "stripes",
            coordinates="continuous" if is_alone else "grid",
            num_train=num_bumps if is_alone else 0,
            num_bumps=0 if is_alone else num_bumps,
        )
        steps = self._count_steps(num_bumps)
        training = dataclasses.replace(
            base.training, seed=self.seed, epochs=1, steps_per_epoch=steps
        )
        return dataclasses.replace(base, data=data, training=training)

    def _count_steps(self, num_bumps: int) -> int:
        stripes = 0 if self.kind == "bumps" else 2 * self.grid_size
        examples = num_bumps + stripes
        passes = self.settings.passes * examples
        batches = math.ceil(passes / self.base.training.batch_size)
        return max(self.settings.steps, batches)

    def count_examples(self, num_bumps: int) -> int:
        """Examples in the training table, stripes included."""
        return len(make_dataset(self.make_config(num_bumps)).splits.train)

    def make_limits(self) -> Limits:
        """Where to search: first with a bump for every 2 to 4 cells."""
        cells = self.grid_size**2
        maximum = self.settings.max_bumps or MAX_DENSITY * cells
        minimum = 1
        if self.kind == "stripes_and_bumps":
            minimum = 0
            splits = make_dataset(self.make_config(0)).splits
            maximum = min(maximum, int(splits.is_id.sum()))
        first = dither(cells / 4, self.seed, self.grid_size)
        return Limits(
            min(first, maximum), maximum, minimum, self.settings.tolerance
        )


def find_in(
    case: Case, criterion: str, score_fn: Callable[[RunConfig], Scores]
) -> tuple[Found, float | None]:
    """What a search for one criterion found, and the score at its count.

    The function gives the scores of a training, recorded or made.
    """
    target = case.settings.targets[criterion]

    def score(count: int) -> float | None:
        return score_fn(case.make_config(count))[criterion]

    found = find_threshold(
        lambda count: is_reached(criterion, score(count), target),
        case.make_limits(),
    )
    return found, score(found.count)


def list_cases(base: RunConfig, settings: SearchSettings) -> list[Case]:
    """All searches, the small grids of every kind first.

    Raises:
        ConfigError: For a flag that no search can follow.
    """
    if base.training.plateau_patience:
        # A training is one epoch here, and a plateau has several.
        rule = "must be 0 for a threshold search"
        value = base.training.plateau_patience
        raise ConfigError("plateau_patience", rule, value)
    if base.data.examples_dir:
        rule = "must be empty for a threshold search, which has many data sets"
        raise ConfigError("examples_dir", rule, base.data.examples_dir)
    given, fresh = base.to_flags(), RunConfig().to_flags()
    for name, instead in DECIDED.items():
        if given[name] != fresh[name]:
            rule = f"is decided by the search ({instead})"
            raise ConfigError(name, rule, given[name])
    kinds = len(settings.variants) * len(settings.sizes)
    if kinds * settings.seeds > MAX_ITEMS:
        rule = f"must make at most {MAX_ITEMS} searches with {kinds} cases"
        raise ConfigError("seeds", rule, settings.seeds)
    return [
        Case(kind, region, size, seed, base, settings)
        for kind, region in settings.variants
        for size in settings.sizes
        for seed in settings.all_seeds
    ]


def scale_region(spec: str, grid_size: int) -> str:
    """The region in pixels of one grid, as `--region` takes it.

    `corner:0.5` holds out the corner above the middle, whatever the grid
    size: fraction f is the position f (N - 1), so that 0 is the first pixel
    and 1 the last, and a region that is symmetric in fractions is symmetric
    on the grid.

    Args:
        spec: A region whose numbers are fractions, such as
            `square:0.25-0.75` or `box:x:0-0.5,y:0.5-1`.
        grid_size: Pixels along a side.

    Raises:
        ConfigError: If a number is no fraction.
    """

    def scale(match: re.Match) -> str:
        fraction = float(match[0])
        if fraction > 1:
            rule = "must have bounds that are fractions of the side, 0 to 1"
            raise ConfigError("regions", rule, spec)
        bound = round(fraction * (grid_size - 1), _DIGITS)
        return f"{bound:.{_DIGITS}f}".rstrip("0").rstrip(".")

    kind, bounds = split_region(spec)
    return f"{kind}:{_NUMBER.sub(scale, bounds)}" if bounds else kind
