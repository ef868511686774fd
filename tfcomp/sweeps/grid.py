"""Trials of a sweep: the cross product of its axes, times the seeds."""

import csv
import dataclasses
import hashlib
import itertools
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfcomp.config import run_flags
from tfcomp.config.errors import ConfigError
from tfcomp.config.hashes import compute_code_version
from tfcomp.config.run_config import LOCATION_FLAGS, RunConfig, make_config
from tfcomp.config.settings import Settings, non_negative, setting
from tfcomp.datasets.splits import add_seed
from tfcomp.metrics.registry import adopt_metrics
from tfcomp.models.registry import describe_unused, make_checked_dataset
from tfcomp.storage.run_folder import METRICS_FILE, TRIALS
from tfcomp.sweeps.pool import is_here
from tfcomp.tables.flatten import ALL, END, Run
from tfcomp.tables.read import try_run

HASH_DIGITS = 12
MAX_LABEL = 80  # characters
GRID: dict[str, tuple[list[str], str]] = {
    "grid": (
        [],
        "A flag to vary and its values, as depth=2,3,4, once for each axis; "
        "every combination is run",
    )
}
MAX_ITEMS = 10**5  # trials, or searches, of one command
MAX_SEEDS = 10**4


def parse_grid(
    specs: Sequence[str],
    num_seeds: int = 1,
    plugins: str = "",
) -> list[dict[str, Any]]:
    """Reads axes, and combines their points; the last axis varies fastest.

    Args:
        specs: Axes such as `depth=2,3` and `encoding/epochs=bump/50,ramp/100`.
            A value that contains a comma is quoted as in CSV:
            `region="box:x:6-22,y:0-9",corner:14`.
        num_seeds: How often each combination is run.
        plugins: Modules that declare further flags.

    Returns:
        Every combination, from the name of a flag to its value.

    Raises:
        ConfigError: An axis cannot be read, or there are too many trials.
        RunError: A name is not a flag of a run.
    """
    axes = [_parse_axis(spec, plugins) for spec in specs]
    count = num_seeds * math.prod(map(len, axes))
    if count > MAX_ITEMS:
        rule = f"and --seeds must make at most {MAX_ITEMS} trials, not {count}"
        raise ConfigError("grid", rule, list(specs))

    combinations = []
    for points in itertools.product(*axes):
        setting: dict[str, Any] = {}
        for point in points:
            for name, value in point.items():
                if name in setting:
                    rule = f"must vary {name} once"
                    raise ConfigError("grid", rule, list(specs))
                setting[name] = value
        combinations.append(setting)
    return combinations


def _split_cells(text: str) -> list[str]:
    """Splits the values of an axis at commas outside of quotes, as in CSV."""
    try:
        rows = list(csv.reader([text], strict=True, skipinitialspace=True))
    except csv.Error as error:
        rule = f"must be quoted as in CSV ({error})"
        raise ConfigError("grid", rule, text) from error
    return [cell.strip() for row in rows for cell in row]


def _parse_axis(spec: str, plugins: str) -> list[dict[str, Any]]:
    """Reads the points of an axis, each with a value of all of its flags."""
    left, _, right = spec.partition("=")
    names = [name.strip() for name in left.split("/")]
    if not right or not all(names):
        raise ConfigError("grid", "must look like depth=2,3,4", spec)

    defined = run_flags.define_run_flags(plugins)
    for name in names:
        # Absl would also take `nopictures`, and read files named by `flagfile`.
        if name not in defined:
            raise run_flags.make_unknown_error(name, defined)
        if name in ("seed", *LOCATION_FLAGS) or names.count(name) > 1:
            rule = (
                f"must not vary {name} (once is enough, and of seeds --seeds)"
            )
            raise ConfigError("grid", rule, spec)

    points: list[dict[str, Any]] = []
    for cell in _split_cells(right):
        texts = [cell]
        if len(names) > 1:
            texts = [part.strip() for part in cell.split("/")]
        if not all(texts) or len(texts) != len(names):
            rule = f"must have a value of {left} at each point"
            raise ConfigError("grid", rule, spec)

        pairs = zip(names, texts, strict=True)
        arguments = [f"--{name}={text}" for name, text in pairs]
        values = run_flags.parse_flags(arguments, defined)
        point = {name: values[name] for name in names}
        if point in points:
            raise ConfigError("grid", f"must have {cell} once", spec)
        points.append(point)
    return points


@dataclass(frozen=True)
class Trial:
    """One run of a sweep; its name has what varies, and a hash."""

    setting: dict[str, Any]  # the flags that the sweep varies, without the seed
    config: RunConfig

    @property
    def name(self) -> str:
        return self.config.run_name

    @property
    def seed(self) -> int:
        return self.config.training.seed

    @property
    def path(self) -> Path:
        return Path(self.config.run_dir)

    def describe(self) -> str:
        """Formats the trial as `depth=2 encoding=bump seed=0`."""
        named = {**self.setting, "seed": self.seed}
        return " ".join(f"{name}={value}" for name, value in named.items())


def read_result(
    trial: Trial,
    history: bool = False,
) -> tuple[Run | None, list[str]]:
    """Reads the numbers of a trial.

    Args:
        trial: Need not be finished.
        history: Also read the numbers of each epoch.

    Returns:
        The run, None if it is unfinished or damaged, and what was left out and
        why.
    """
    if not (trial.path / METRICS_FILE).exists():
        return None, []
    run, reasons = try_run(trial.path, history)
    if run is not None:
        # Trials may differ in flags that change no number.
        run.row["run"] = trial.name
        adopt_metrics(run.own_metrics)
    return run, reasons


def list_scores(run: Run | None) -> dict[str, float]:
    """Lists scores such as `ood_mse`, and measures that are one number."""
    scores = {}
    for when, subset, stage, name, value in run.numbers if run else ():
        if when != END or stage:
            continue
        if subset != ALL:
            scores[f"{subset}_{name}"] = value
        elif "/" not in name:
            scores[name] = value
    return scores


def make_trials(
    flags: Mapping[str, Any],
    settings: Sequence[dict[str, Any]],
    seeds: Sequence[int],
) -> tuple[list[Trial], list[str]]:
    """Makes all trials, setting by setting.

    Args:
        flags: Parsed flags, which hold for every trial.
        settings: What varies, as from `parse_grid`.
        seeds: Of every setting.

    Returns:
        The trials, and lines for the user.

    Raises:
        ConfigError: A setting breaks a rule.
    """
    base = make_config(dict(flags))
    places: dict[str, Any] = {
        "log_dir": str(Path(base.run_dir) / TRIALS),
        "export_dir": os.path.join(base.export_dir, base.run_name),
        "resume": True,
    }
    existing = list_existing(Path(places["log_dir"]))
    trials: list[Trial] = []
    notes: dict[str, None] = {}
    if base.training.seed not in (0, *seeds):
        notes["ignored: --seed, seeds begin at --first_seed"] = None
    for varied in settings:
        config = make_config(
            {
                **flags,
                **varied,
                **places,
                "seed": seeds[0],
            }
        )
        dataset = make_checked_dataset(config, is_here(flags))
        notes |= dict.fromkeys(dataset.list_notes())
        typed = [*flags.get(run_flags.TYPED, ()), *varied]
        unused = describe_unused(config, typed)
        if unused:
            notes[unused] = None
        version = compute_code_version(config.plugins)
        for seed in seeds:
            run = _replace_seed(config, seed, flags.get("coverage"))
            digest = compute_hash(run, version)[:HASH_DIGITS]
            if digest not in existing:
                label = make_label({**varied, "seed": seed})
                existing[digest] = f"{label}-{digest}"
            run = dataclasses.replace(run, run_name=existing[digest])
            trials.append(Trial(varied, run))
    return trials, list(notes)


def _replace_seed(
    config: RunConfig,
    seed: int,
    coverage: str | None,
) -> RunConfig:
    """Returns a run with a seed, which draws its region with `--coverage`."""
    data = config.data
    if coverage:
        region = add_seed(data.region, seed)
        data = dataclasses.replace(data, region=region)
    training = dataclasses.replace(config.training, seed=seed)
    return dataclasses.replace(config, data=data, training=training)


def make_label(setting: Mapping[str, Any]) -> str:
    """Formats flags as a part of a file name, as `depth=2_seed=0`."""
    text = "_".join(f"{name}={value}" for name, value in setting.items())
    text = re.sub(r"[^\w.=+-]+", "_", text)
    return text.lstrip(".-")[-MAX_LABEL:]


def list_existing(folder: Path) -> dict[str, str]:
    """Returns the names of trials in a folder by their hashes.

    With another axis a finished trial would have another name.
    """
    names = {}
    if folder.is_dir():
        for path in folder.iterdir():
            digest = path.name.rpartition("-")[2]
            names[digest] = path.name
    return names


def compute_hash(config: RunConfig, code_version: str) -> str:
    """Hashes the flags and the code of a run, to 16 hex digits.

    Args:
        config: The run; its name and its folders do not count.
        code_version: Of the code that decides its numbers.
    """
    content = {"flags": config.identity(), "code": code_version}
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class SeedSettings(Settings):
    """Seeds of every setting of a grid."""

    seeds: int = setting(
        1,
        "How many seeds each setting is trained with.",
        minimum=1,
        maximum=MAX_SEEDS,
    )
    first_seed: int = non_negative(
        0, "The first of the seeds, which are consecutive."
    )

    @property
    def all_seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)


@dataclass(frozen=True)
class SweepSettings(SeedSettings):
    """Numbers and statistics that a sweep makes."""

    measure: bool = setting(
        False,
        "Also compute the metrics that the paper's claims are judged by, and "
        "add them to metrics.json of every trial.",
    )
    pairs: str = setting(
        "first",
        "Settings that paired.csv compares: first is the first setting of the "
        "grid with each other one, all is every pair.",
        choices=("first", "all"),
    )
    coverage: str = setting(
        "",
        "Shares of combinations in training, as random:.1,.2,.4: every "
        "setting is trained with each of them, in place of --region.",
    )
