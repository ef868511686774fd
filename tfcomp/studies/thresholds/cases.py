"""The searches of a command, and the trainings that each may ask for.

A case is one search: a kind of training set, a region, a grid size, and the
seed of bumps, initial weights and the order of batches.
"""

import dataclasses
import json
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
from tfcomp.storage.code_version import compute_code_version, hash_modules
from tfcomp.storage.files import (
    DamagedFileError,
    make_subfolder,
    read_json,
    write_text,
)
from tfcomp.studies.thresholds import search
from tfcomp.studies.thresholds.threshold_settings import (
    SearchSettings,
    is_reached,
)
from tfcomp.sweeps.grid import MAX_ITEMS, compute_hash

# The largest number of bumps for a cell of the grid, unless a flag says so.
MAX_DENSITY = 4
# Flags of a run that a search cannot follow, and why.
RULES = {
    # A training is one epoch here, and a plateau has several.
    "plateau_patience": "must be 0 for a threshold search",
    "examples_dir": "must be empty for a threshold search, which has many "
    "data sets",
    "region": "is decided by the search (--regions)",
    "grid_size": "is decided by the search (--grid_sizes)",
    "seed": "is decided by the search (--first_seed)",
}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# What trains a search's networks and reads their scores.
TRIAL = "tfcomp.studies.thresholds.threshold_trial"

Scores = dict[str, float | None]


class MissingError(LookupError):
    """A training that a search needs has not been done."""


@dataclass(frozen=True)
class Evaluations:
    """Recorded scores of trainings, a file each, in a folder.

    A hash of flags and code names a file. Targets are no part of it, so another
    target or a finer tolerance asks only for trainings that are missing.
    """

    folder: Path

    @classmethod
    def of(cls, base: RunConfig) -> "Evaluations":
        """Returns the scores of a command, given a run that has its name."""
        return cls(Path(base.run_dir) / "evaluations")

    def get_scores(self, config: RunConfig) -> Scores:
        """Returns the scores of a training.

        Raises:
            MissingError: Without an intact file.
        """
        path = self.locate(config)
        try:
            return dict(read_json(path)["scores"])
        except (FileNotFoundError, DamagedFileError, KeyError) as error:
            raise MissingError(path.name) from error

    def write_scores(
        self, config: RunConfig, scores: Scores, seconds: float
    ) -> None:
        """Records the scores of a training in one step."""
        flags = config.identity()
        record = {"flags": flags, "scores": scores, "seconds": seconds}
        make_subfolder(self.folder.parent, self.folder.name)
        text = json.dumps(record, sort_keys=True, allow_nan=False)
        write_text(self.locate(config), f"{text}\n")

    def locate(self, config: RunConfig) -> Path:
        """Returns the file of a training."""
        code = compute_code_version(config.plugins) + hash_modules([TRIAL])
        return self.folder / f"{compute_hash(config, code)}.json"


@dataclass(frozen=True)
class Case:
    """One search, of `bumps` or `stripes_and_bumps`."""

    kind: str
    region: str  # held out, with bounds in fractions of the side
    grid_size: int
    seed: int
    base: RunConfig  # whose flags hold for everything else
    settings: SearchSettings

    @property
    def name(self) -> str:
        """A name that file systems accept."""
        region = "".join(c if c.isalnum() else "_" for c in self.region)
        return f"{self.kind}-{region}-n{self.grid_size}-s{self.seed}"

    def describe(self) -> str:
        """Returns the case in one line."""
        where = f"region={self.region} N={self.grid_size}"
        return f"{self.kind} {where} seed={self.seed}"

    def make_config(self, num_bumps: int) -> RunConfig:
        """Returns the training with a number of bumps, scored everywhere.

        Flags that decide when a run is scored and saved get their defaults:
        they must not change the name of the training.
        """
        fresh, is_alone = RunConfig(), self.kind == "bumps"
        examples = num_bumps + (0 if is_alone else 2 * self.grid_size)
        passes = self.settings.passes * examples
        batches = math.ceil(passes / self.base.training.batch_size)
        base = dataclasses.replace(
            self.base,
            eval_every=fresh.eval_every,
            eval_points=int(LARGEST[int]),
            layerwise_every=fresh.layerwise_every,
            checkpoint_seconds=fresh.checkpoint_seconds,
        )
        data = dataclasses.replace(
            base.data,
            grid_size=self.grid_size,
            region=scale_region(self.region, self.grid_size),
            dataset="gaussian_bumps" if is_alone else "stripes",
            coordinates="continuous" if is_alone else "grid",
            num_train=num_bumps if is_alone else 0,
            num_bumps=0 if is_alone else num_bumps,
        )
        training = dataclasses.replace(
            base.training,
            seed=self.seed,
            epochs=1,
            steps_per_epoch=max(self.settings.steps, batches),
        )
        return dataclasses.replace(base, data=data, training=training)

    def count_examples(self, num_bumps: int) -> int:
        """Returns the number of training examples, stripes included."""
        return len(make_dataset(self.make_config(num_bumps)).splits.train)

    def make_limits(self) -> search.Limits:
        """Returns where to search: first with a bump for every 2 to 4 cells."""
        cells = self.grid_size**2
        maximum = self.settings.max_bumps or MAX_DENSITY * cells
        minimum = 0 if self.kind == "stripes_and_bumps" else 1
        if minimum == 0:
            splits = make_dataset(self.make_config(0)).splits
            maximum = min(maximum, int(splits.is_id.sum()))
        first = min(
            search.dither(cells / 4, self.seed, self.grid_size), maximum
        )
        return search.Limits(first, maximum, minimum, self.settings.tolerance)


def find_in(
    case: Case, criterion: str, score_fn: Callable[[RunConfig], Scores]
) -> tuple[search.Found, float | None]:
    """Searches for one criterion; returns what it found, and the score."""
    target = case.settings.targets[criterion]

    def score(count: int) -> float | None:
        return score_fn(case.make_config(count))[criterion]

    def reaches(count: int) -> bool:
        return is_reached(criterion, score(count), target)

    found = search.find_threshold(reaches, case.make_limits())
    return found, score(found.count)


def list_cases(base: RunConfig, settings: SearchSettings) -> list[Case]:
    """Returns all searches, the small grids of every kind first.

    Raises ConfigError for a flag that no search can follow.
    """
    given, fresh = base.to_flags(), RunConfig().to_flags()
    for name, rule in RULES.items():
        if given[name] != fresh[name]:
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
    """Converts a region in fractions of the side to pixels of one grid.

    Fraction f is the position f (N - 1): 0 is the first pixel and 1 the last.
    `corner:0.5` holds out the corner above the middle at any size.
    Raises ConfigError if a number is no fraction.
    """

    def scale(match: re.Match) -> str:
        fraction = float(match[0])
        if fraction > 1:
            rule = "must have bounds that are fractions of the side, 0 to 1"
            raise ConfigError("regions", rule, spec)
        bound = round(fraction * (grid_size - 1), 6)
        return f"{bound:.6f}".rstrip("0").rstrip(".")

    kind, bounds = split_region(spec)
    return f"{kind}:{_NUMBER.sub(scale, bounds)}" if bounds else kind
