"""A profile: the runs of a pipeline, and which of their models is pushed.

A profile is a folder of flagfiles. Each describes a sweep or, if its name
begins with `threshold`, a threshold search. One of them, `pipeline.flags`, has
the flags of `RULES`: the sweep that the model comes from, and its scores.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import reproduction  # noqa: F401  (its flagfiles are found by their names)
from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import PLUGIN_FLAG
from tfcomp.config.run_flags import expand_flagfiles, make_flags, parse_flags
from tfcomp.sweeps import sweep_run
from tfcomp.sweeps.sweep_run import Sweep, Workload

SHIPPED = Path(__file__).parent / "profiles"
RULES_FILE = "pipeline.flags"
PROFILE_FLAGS: dict[str, tuple[Any, str]] = {
    "profile": (
        "smoke",
        "What to train: smoke, quick, or a folder of your own.",
    ),
    **PLUGIN_FLAG,
}
RULES: dict[str, tuple[Any, str]] = {
    "candidate": ("", "The --run_name of the sweep with the model to push."),
    "push_as": ("", "Models are pushed to <export_dir>/<push_as>/<version>/."),
    "max": (
        [],
        "A score and the most that its mean over seeds may be, as "
        "id_relative_mse=0.05. May be repeated.",
    ),
    "min": (
        [],
        "A score and the least that its mean over seeds may be, as "
        "ood_position_accuracy=0.95. May be repeated.",
    ),
}
THRESHOLD = "threshold"  # begins the names of flagfiles of searches
# Folders in the output of the trainer.
LOGS = "logs"
MODELS = "saved_models"


@dataclass(frozen=True)
class Profile:
    """A profile with all of its flags resolved.

    Attributes:
        name: The name of its folder.
        parts: The flags of each sweep or search, by the name of its flagfile.
        candidate: The run name of the sweep with the model to push.
        push_as: The name under which this model is pushed.
        bounds: Score, `max` or `min`, and the mean over seeds that is just
            accepted.
    """

    name: str
    parts: dict[str, list[str]]
    candidate: str
    push_as: str
    bounds: list[list[Any]]

    def to_json(self) -> str:
        """Formats the profile as the steps of the pipeline receive it."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Parses the result of `to_json`."""
        return cls(**json.loads(text))


def load_profile(name: str, plugins: str = "") -> Profile:
    """Reads and checks a profile.

    Args:
        name: The name of a shipped profile, or a folder.
        plugins: Modules that its sweeps need, separated by commas. A folder
            may come from a stranger: the user names them, not a flagfile.

    Raises:
        ConfigError: If there is no such profile, or one of its flags breaks a
            rule.
        RunError: If a flagfile cannot be read.
    """
    folder = find_folder(name)
    rules_file = folder / RULES_FILE
    rules = parse_flags([f"--flagfile={rules_file}"], make_flags(RULES))

    given = []
    if plugins:
        given.append(f"--plugins={plugins}")
    parts = {}
    for path in sorted(folder.glob("*.flags")):
        if path != rules_file:
            arguments = [f"--flagfile={path}", *given]
            parts[path.stem] = expand_flagfiles(arguments)

    profile = Profile(
        name=folder.name,
        parts=parts,
        candidate=rules["candidate"],
        push_as=rules["push_as"],
        bounds=parse_bounds(rules, "max") + parse_bounds(rules, "min"),
    )
    check_profile(profile)
    return profile


def find_folder(name: str) -> Path:
    """Finds a profile: `smoke` is shipped, `./smoke` is the user's."""
    folders = [Path(name)]
    if os.sep not in name:
        folders.insert(0, SHIPPED / name)

    for folder in folders:
        # Not `Path.is_file`, which raises for a name that is too long.
        if name and os.path.isfile(folder / RULES_FILE):
            return folder.resolve()

    shipped = ", ".join(sorted(path.name for path in SHIPPED.iterdir()))
    rule = f"must be one of {shipped}, or a folder with a {RULES_FILE}"
    raise ConfigError("profile", rule, name)


def parse_bounds(rules: Mapping[str, Any], flag: str) -> list[list[Any]]:
    """Parses bounds of scores, such as `id_relative_mse=0.05`.

    Args:
        rules: Flags with their values.
        flag: `max` or `min`.
    """
    bounds = []
    for text in rules[flag]:
        score, _, bound = text.partition("=")
        try:
            bounds.append([score, flag, float(bound)])
        except ValueError as error:
            rule = "must look like id_relative_mse=0.05"
            raise ConfigError(flag, rule, text) from error
    return bounds


def check_profile(profile: Profile) -> None:
    """Raises a ConfigError if a profile could push no model."""
    name = profile.push_as
    if not name or name.startswith(".") or os.sep in name:
        rule = "must be a plain name without a path"
        raise ConfigError("push_as", rule, name)
    if not profile.bounds:
        raise ConfigError("max", "or --min must bound a score", [])

    works = make_works(profile)
    names = [work.folder.name for work in works]
    if len(set(names)) < len(names):
        rule = "must have flagfiles that differ in --run_name"
        raise ConfigError("profile", rule, profile.name)
    find_sweep(works, profile)


def find_sweep(works: Sequence[Workload], profile: Profile) -> Sweep:
    """Finds the sweep of the candidate among the works of a profile."""
    sweeps = {}
    for work in works:
        if isinstance(work, Sweep):
            sweeps[work.folder.name] = work
    if profile.candidate not in sweeps:
        rule = f"must be the name of a sweep ({', '.join(sweeps)})"
        raise ConfigError("candidate", rule, profile.candidate)
    return sweeps[profile.candidate]


def make_works(
    profile: Profile,
    runs_dir: str | Path = "",
    examples_dir: str | Path = "",
) -> list[Workload]:
    """Makes the sweeps and searches of a profile; runs nothing.

    Args:
        profile: The profile. Plugins of its flags are imported.
        runs_dir: The output of the trainer. By default the folders of the
            flags of a single run.
        examples_dir: Datasets that the sweeps train on; by default examples
            are rendered.
    """
    works = []
    for name, flags in profile.parts.items():
        arguments = list(flags)
        if runs_dir:
            arguments.append(f"--log_dir={runs_dir}/{LOGS}")
            arguments.append(f"--export_dir={runs_dir}/{MODELS}")
        if examples_dir and not name.startswith(THRESHOLD):
            arguments.append(f"--examples_dir={examples_dir}")
        works.append(make_work(name, arguments))
    return works


def make_work(name: str, arguments: Sequence[str]) -> Workload:
    """Makes the sweep, or by its name the search, of a flagfile, in silence.

    Args:
        name: Of the flagfile.
        arguments: Flags of the command.
    """
    from reproduction.thresholds import command as thresholds

    with redirect_stdout(io.StringIO()):  # notes of the commands
        if name.startswith(THRESHOLD):
            values = parse_flags(arguments, thresholds.define_flags())
            return thresholds.make_searches(values)
        values = parse_flags(arguments, sweep_run.define_flags())
        return sweep_run.make_sweep(values)
