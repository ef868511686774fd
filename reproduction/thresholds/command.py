"""Searches how much data a decoder needs (section 4.2, figure 4c).

    python -m reproduction.thresholds threshold --workers=2

searches, for every kind of training set, grid size and seed, the smallest
number of bumps that reaches a target, and draws how it grows with the grid.
The search itself decides on the dataset, its size, its region, its
coordinates, the grid size, the seed and the number of steps; all other flags
of a run hold for every training. Finished searches survive an interruption:
the same command runs the missing ones.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from tfcomp.config import run_flags
from tfcomp.config.errors import ConfigError
from tfcomp.config.hashes import compute_code_version, hash_modules
from tfcomp.config.plugins import import_plugins
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import Command
from tfcomp.config.settings import LARGEST, setting, split_names
from tfcomp.datasets import make_dataset
from tfcomp.models.registry import make_checked_dataset
from tfcomp.storage import files
from tfcomp.storage.files import check_run_folders
from tfcomp.sweeps.grid import (
    MAX_SEEDS,
    SeedSettings,
    compute_hash,
    parse_grid,
)
from tfcomp.sweeps.pool import SchedulerOptions, is_here
from tfcomp.sweeps.sweep_run import Workload, run_missing
from tfcomp.sweeps.worker_task import TaskFunction

ACCURACY, ERROR = "position_accuracy", "relative_mse"
STRIPED = "stripes_and_bumps"
TABLE = "thresholds.csv"
TOLERANCE = 1.2  # the ratio of a threshold to a smaller number that fails
# Flags of a run that a search decides, or cannot follow.
DECIDED = (
    "region",
    "grid_size",
    "seed",
    "plateau_patience",
    "id_target",
    "examples_dir",
)
Row = dict[str, Any]
Scores = Mapping[str, float | None]


@dataclass(frozen=True)
class SearchSettings(SeedSettings):
    """Flags of a search, beside the flags of a run."""

    grid_sizes: str = setting(
        "16,20,24,28,32",
        "The grid sizes N that are searched at, separated by commas.",
    )
    kinds: str = setting(
        f"bumps,{STRIPED}",
        "Training sets: bumps at continuous positions, where nothing is held "
        f"out, or {STRIPED}, all 2 N stripes and bumps outside of a corner.",
    )
    seeds: int = setting(
        3,
        "The searches of every kind and size, each with its seed.",
        minimum=1,
        maximum=MAX_SEEDS,
    )
    criterion: str = setting(
        ACCURACY,
        "The score that must reach the target: position_accuracy must be at "
        "least the target, relative_mse at most.",
        choices=(ACCURACY, ERROR),
    )
    target: float = setting(0.95, "The target.", above=0.0)
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

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds = split_names(self.kinds) or [""]
        if not {"bumps", STRIPED}.issuperset(kinds):
            rule = f"must be among bumps, {STRIPED}"
            raise ConfigError("kinds", rule, self.kinds)

    @property
    def sizes(self) -> list[int]:
        """The grid sizes, large ones first: they take the longest."""
        points = parse_grid([f"grid_size={self.grid_sizes}"])
        sizes = [point["grid_size"] for point in points]
        return sorted(sizes, reverse=True)

    def is_reached(self, score: float | None) -> bool:
        """Checks a score against the target; None is a diverged training.

        Args:
            score: The score of a training.
        """
        if score is None:
            return False
        if self.criterion == ACCURACY:
            return score >= self.target
        return score <= self.target


@dataclass(frozen=True)
class Case:
    """One search, with its seed.

    Attributes:
        kind: The training set.
        grid_size: The side of the grid in pixels.
        seed: It decides bumps, initial weights, the order of batches, and the
            first number of bumps.
        base: Its flags hold for everything that the search does not decide.
        settings: Flags that make this search alone.
    """

    kind: str
    grid_size: int
    seed: int
    base: RunConfig
    settings: SearchSettings

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.grid_size}_{self.seed}"

    def describe(self) -> str:
        return f"{self.kind} N={self.grid_size} seed={self.seed}"

    @property
    def path(self) -> Path:
        """The file of its result, whose name is a hash of flags and code."""
        code = compute_code_version(self.base.plugins)
        code += hash_modules([__name__])
        name = compute_hash(self.base, f"{code} {self.settings!r}")
        return Path(self.base.run_dir, "searches", f"{name}.json")

    def read_row(self) -> Row | None:
        """Reads its result; None if it is missing or damaged."""
        try:
            return dict(files.read_json(self.path))
        except (FileNotFoundError, files.DamagedFileError):
            return None

    def count_examples(self, num_bumps: int) -> int:
        """Counts the training examples, stripes included.

        Args:
            num_bumps: The number of bumps in training.
        """
        if self.kind == STRIPED:
            return num_bumps + 2 * self.grid_size
        return num_bumps

    def make_config(self, num_bumps: int) -> RunConfig:
        """Makes the training with a number of bumps, scored everywhere.

        Args:
            num_bumps: The number of bumps in training.
        """
        examples = self.settings.passes * self.count_examples(num_bumps)
        batches = math.ceil(examples / self.base.training.batch_size)
        config = self.base.to_flags()
        config |= {
            "grid_size": self.grid_size,
            "seed": self.seed,
            "epochs": 1,
            "steps_per_epoch": max(self.settings.steps, batches),
            "eval_points": int(LARGEST[int]),
        }
        if self.kind == STRIPED:
            config |= {
                "dataset": "stripes",
                "coordinates": "grid",
                "num_train": 0,
                "num_bumps": num_bumps,
                "region": f"corner:{(self.grid_size - 1) / 2:g}",
            }
        else:
            config |= {
                "dataset": "gaussian_bumps",
                "coordinates": "continuous",
                "num_train": num_bumps,
                "num_bumps": 0,
                "region": "none",
            }
        return make_config(config)

    def find_range(self) -> tuple[int, int]:
        """Finds the first number of bumps to try, and the largest."""
        cells = self.grid_size**2
        largest = 4 * cells
        if self.kind == STRIPED:
            largest = 3 * cells // 4  # outside of the corner
        # So that rounding to a geometric grid averages out over seeds.
        generator = np.random.default_rng((self.seed, self.grid_size))
        first = round(cells / 4 * 2.0 ** generator.uniform())
        return min(first, largest), largest

    def search(self, train: Callable[[RunConfig], Scores]) -> Row:
        """Searches the least number of bumps; returns a row of the table.

        Args:
            train: Trains a network and scores it.
        """
        criterion = self.settings.criterion
        scores = {}

        def reaches(count: int) -> bool:
            score = train(self.make_config(count))[criterion]
            scores[count] = score
            print(f"{count:>6} bumps  {score}", flush=True)
            return self.settings.is_reached(score)

        count = 0
        # Stripes alone can be enough; without them, a bump is needed.
        if self.kind != STRIPED or not reaches(0):
            first, largest = self.find_range()
            count = find_threshold(reaches, first, largest)
        score = scores[count]
        return {
            "kind": self.kind,
            "criterion": criterion,
            "grid_size": self.grid_size,
            "seed": self.seed,
            "num_bumps": count,
            "num_examples": self.count_examples(count),
            "reached": self.settings.is_reached(score),
            "score": score,
            "target": self.settings.target,
            "num_trainings": len(scores),
        }


def find_threshold(
    reaches: Callable[[int], bool],
    first: int,
    largest: int,
) -> int:
    """Brackets the threshold by doubling or halving, then bisects its log.

    Args:
        reaches: Tells if a count reaches the target; asked once for each.
        first: The count to begin with.
        largest: The largest count.

    Returns:
        The smallest count tried that reaches, else the largest. A count below
        it by at most `TOLERANCE` (or by 1) does not reach.
    """
    low = 0
    high = first
    if reaches(first):
        low = first // 2
        while low and reaches(low):  # 0 is not enough
            high = low
            low = low // 2
    else:
        while high < largest:
            low = high
            high = min(2 * high, largest)
            if reaches(high):
                break
        else:
            return largest
    while high - low > 1 and high > TOLERANCE * low:
        middle = round(math.sqrt(max(low, 1) * high))
        middle = min(max(middle, low + 1), high - 1)
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high


def run_search(argv: list[str]) -> None:
    """Runs the one search that the flags describe, in a worker."""
    values = run_flags.parse_flags(argv[1:], define_flags())
    import_plugins(values["plugins"])
    with start_tensorflow():
        (case,) = make_searches(values).items
        row = case.search(train_and_score)
    files.make_folder(case.path.parent)
    files.write_text(case.path, f"{json.dumps(row, allow_nan=False)}\n")


def train_and_score(config: RunConfig) -> Scores:
    """Trains the decoder of a run; scores held-out points, or all."""
    import keras

    from tfcomp.metrics.run_analysis import RunAnalysis
    from tfcomp.training.fit import fit_epochs
    from tfcomp.training.prepared_models import (
        make_model,
        make_strategy,
        make_training_model,
    )

    dataset = make_dataset(config)
    strategy = make_strategy(config.training.num_replicas)
    train_model = make_training_model(config, dataset, strategy)
    fit_epochs(train_model, dataset, config)
    # Scored in float32, whatever the precision of the training.
    eval_model = make_model(config, dataset, "float32")
    eval_model.set_weights(train_model.get_weights())
    subsets = RunAnalysis(eval_model, dataset).evaluation.scores
    # Else every model would stay in memory until the last one.
    keras.backend.clear_session()
    if dataset.splits.is_ood.any():
        return subsets["ood"]
    return subsets["id"]


@dataclass(frozen=True)
class ThresholdSearches(Workload):
    """All searches of one command, its items; see docs/claims.md."""

    kind = "threshold search"
    noun = "searches"
    flags_name = "threshold.flags"

    items: Sequence[Case]

    def is_finished(self, case: Case) -> bool:
        return case.read_row() is not None

    def make_call(
        self, case: Case
    ) -> tuple[RunConfig, TaskFunction, list[str]]:
        lines = run_flags.list_flag_lines(case.base)
        lines += run_flags.list_flag_lines(case.settings)
        return case.base, run_search, lines

    def list_rows(self) -> list[Row]:
        """Lists the rows of all finished searches."""
        rows = [case.read_row() for case in self.items]
        return list(filter(None, rows))

    def write_tables(self, failures: Mapping[str, str]) -> None:
        """Writes a row for each finished search.

        Args:
            failures: Messages by item; none of them has a row.
        """
        if rows := self.list_rows():
            files.write_csv(self.folder / TABLE, rows)

    def write_reports(self) -> None:
        """Draws the data needed against the size of the grid."""
        import pandas as pd

        from reproduction.thresholds.laws import plot_thresholds
        from tfcomp.figures.exhibits import figure_to_png, use_own_style

        if rows := self.list_rows():
            with use_own_style():
                figure = plot_thresholds(pd.DataFrame(rows))
                content = figure_to_png(figure)
            files.write_bytes(self.folder / "thresholds.png", content)


def search_thresholds(values: dict[str, Any]) -> int:
    """Runs the missing searches, and writes the table and the figure."""
    options = SchedulerOptions.from_flags(values)
    searches = make_searches(values)
    check_run_folders(values)
    failures = run_missing(searches, options)
    print(f"table   {searches.folder / TABLE}")
    for line in failures:
        print(f"failed   {line}", file=sys.stderr)
    return 1 if failures else 0


def define_flags() -> flags.FlagValues:
    """Defines the flags of a run, of a search, and of its workers."""
    values = run_flags.define_run_flags()
    values.set_default("run_name", "threshold")
    run_flags.define_settings(SearchSettings.list_settings(), values)
    run_flags.define_settings(SchedulerOptions.list_settings(), values)
    return values


def make_searches(values: dict[str, Any]) -> ThresholdSearches:
    """Makes the searches that the flags describe; writes nothing.

    Args:
        values: Flags by name.

    Raises:
        ConfigError: If a flag breaks a rule.
    """
    base = make_config(values)
    settings = SearchSettings.from_flags(values)
    default = RunConfig().to_flags()
    for name in DECIDED:
        if values[name] != default[name]:
            rule = "must be left out: a threshold search decides it"
            raise ConfigError(name, rule, values[name])
    kinds = split_names(settings.kinds)
    sizes = settings.sizes
    cases = []
    for kind, size, seed in itertools.product(kinds, sizes, settings.all_seeds):
        own = replace(
            settings, kinds=kind, grid_sizes=f"{size}", first_seed=seed, seeds=1
        )
        case = Case(kind, size, seed, base, own)
        cases.append(case)
        if seed == settings.first_seed:
            # Seeds differ in nothing that is checked.
            _, largest = case.find_range()
            make_checked_dataset(case.make_config(largest), is_here(values))
    lines = run_flags.format_flags(base)
    lines += "\n".join([*run_flags.list_flag_lines(settings), ""])
    return ThresholdSearches(Path(base.run_dir), cases, lines)


main = Command(
    __doc__,
    define_flags,
    search_thresholds,
    "python -m reproduction.thresholds threshold_quick --workers=2",
)
