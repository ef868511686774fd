"""The searches of a command, and the trainings that each may ask for.

A case is one search: a kind of training set, a region, a grid size, and the
seed of bumps, initial weights and the order of batches. Its result, a row for
each criterion, is one file, whose name is a hash of flags and code.
"""

import itertools
import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.thresholds.search_settings import SearchSettings
from tfcomp.config.errors import ConfigError
from tfcomp.config.hashes import compute_code_version, hash_modules
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.settings import LARGEST
from tfcomp.datasets import make_dataset
from tfcomp.datasets.regions import split_region
from tfcomp.storage import files
from tfcomp.sweeps.grid import MAX_ITEMS, compute_hash

# Flags of a run that a search cannot follow, and why.
RULES = {
    "plateau_patience": "must be 0 for a threshold search",
    "id_target": "must be 0 for a threshold search, which restarts nothing",
    "examples_dir": "must be empty for a threshold search, which has many "
    "data sets",
    "region": "is decided by the search (--regions)",
    "grid_size": "is decided by the search (--grid_sizes)",
    "seed": "is decided by the search (--first_seed)",
}
SOURCES = ["reproduction.thresholds.one_search"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One search, of `bumps` or `stripes_and_bumps`."""

    kind: str
    region: str  # held out, with bounds in fractions of the side
    grid_size: int
    seed: int
    base: RunConfig  # whose flags hold for everything else
    settings: SearchSettings  # which make this search alone

    @property
    def name(self) -> str:
        return re.sub(r"\W+", "_", self.describe())

    def describe(self) -> str:
        where = f"region={self.region} N={self.grid_size}"
        return f"{self.kind} {where} seed={self.seed}"

    @property
    def path(self) -> Path:
        code = compute_code_version(self.base.plugins) + hash_modules(SOURCES)
        name = compute_hash(self.base, f"{code} {self.settings!r}")
        return Path(self.base.run_dir, "searches", f"{name}.json")

    def read_rows(self) -> list[Row]:
        try:
            return list(files.read_json(self.path)["rows"])
        except (FileNotFoundError, files.DamagedFileError, KeyError):
            return []

    def write_rows(self, rows: list[Row]) -> None:
        files.make_folder(self.path.parent)
        text = json.dumps({"rows": rows}, allow_nan=False)
        files.write_text(self.path, f"{text}\n")

    def count_examples(self, num_bumps: int) -> int:
        """Returns the number of training examples, stripes included."""
        return num_bumps + (0 if self.kind == "bumps" else 2 * self.grid_size)

    def make_config(self, num_bumps: int) -> RunConfig:
        """Returns the training with a number of bumps, scored everywhere."""
        is_alone, flags = self.kind == "bumps", self.base.to_flags()
        passes = self.settings.passes * self.count_examples(num_bumps)
        batches = math.ceil(passes / self.base.training.batch_size)
        flags |= {
            "dataset": "gaussian_bumps" if is_alone else "stripes",
            "coordinates": "continuous" if is_alone else "grid",
            "num_train": num_bumps if is_alone else 0,
            "num_bumps": 0 if is_alone else num_bumps,
            "grid_size": self.grid_size,
            "region": scale_region(self.region, self.grid_size),
            "seed": self.seed,
            "epochs": 1,
            "steps_per_epoch": max(self.settings.steps, batches),
            "eval_points": int(LARGEST[int]),
        }
        return make_config(flags)

    def find_range(self) -> tuple[int, int, int]:
        """Returns the first number of bumps to try, the largest, the least."""
        cells = self.grid_size**2
        least, largest = 1, self.settings.max_bumps or 4 * cells
        if self.kind == "stripes_and_bumps":
            splits = make_dataset(self.make_config(0)).splits
            least, largest = 0, min(largest, int(splits.is_id.sum()))
        # So that rounding to a geometric grid averages out over seeds.
        shift = np.random.default_rng((self.seed, self.grid_size)).uniform()
        return min(round(cells / 4 * 2.0**shift), largest), largest, least


def list_cases(base: RunConfig, settings: SearchSettings) -> list[Case]:
    """Returns all searches, the small grids of every kind first."""
    given, default = base.to_flags(), RunConfig().to_flags()
    for name, rule in RULES.items():
        if given[name] != default[name]:
            raise ConfigError(name, rule, given[name])
    axes = base.model.axes  # of x and y
    is_given = "," in axes and "find" not in axes
    if base.model.model == "hard_rendering" and not is_given:
        rule = "must give each axis, a threshold search prunes none"
        raise ConfigError("axes", rule, axes)
    kinds = len(settings.variants) * len(settings.sizes)
    if kinds * settings.seeds > MAX_ITEMS:
        rule = f"must make at most {MAX_ITEMS} searches with {kinds} cases"
        raise ConfigError("seeds", rule, settings.seeds)
    cases = []
    lists = settings.variants, settings.sizes, settings.all_seeds
    for (kind, region), size, seed in itertools.product(*lists):
        own = replace(settings, kinds=kind, regions=f'"{region}"', seeds=1)
        own = replace(own, grid_sizes=str(size), first_seed=seed)
        cases.append(Case(kind, region, size, seed, base, own))
    return cases


def scale_region(spec: str, grid_size: int) -> str:
    """Converts a region from fractions f to positions f (N - 1) of the grid."""

    def scale(match: re.Match[str]) -> str:
        fraction = float(match[0])
        if fraction > 1:
            rule = "must have bounds that are fractions of the side, 0 to 1"
            raise ConfigError("regions", rule, spec)
        bound = round(fraction * (grid_size - 1), 6)
        return f"{bound:.6f}".rstrip("0").rstrip(".")

    kind, bounds = split_region(spec)
    bounds = re.sub(r"\d+(?:\.\d+)?", scale, bounds)
    return f"{kind}:{bounds}" if bounds else kind
