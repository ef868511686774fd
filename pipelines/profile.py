"""A profile: the runs of a pipeline, and when their model may be pushed.

docs/pipeline.md lists the files of a profile; `flagfiles` in `profile.toml`
names a shipped folder of them. The steps receive one JSON string in which every
flag is resolved.

An ID error alone chooses the candidate. A choice by an OOD score would use the
held-out combinations to select the model, which makes its OOD scores invalid.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin, get_type_hints

from reproduction import FLAGFILES
from reproduction.verdicts import Rule
from tfcomp.config import flagfiles
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import PLUGIN_FLAG
from tfcomp.config.run_config import split_names
from tfcomp.storage.code_version import hash_modules
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.workload import Workload

if TYPE_CHECKING:
    from pandas import DataFrame

PROFILE_FLAG = {
    "profile": (
        "smoke",
        "What to train: smoke, quick, campaign, paper, or your own folder.",
    ),
    **PLUGIN_FLAG,
}
SHIPPED = Path(__file__).parent / "profiles"
LIBRARIES = ("tensorflow", "keras", "tensorflow-datasets", "numpy", "kfp")
RULES_FILE = "profile.toml"
CHOOSE_BY = "id_relative_mse"
KINDS = {str: "a string", dict: "a table", int: "an integer"}


@dataclass(frozen=True)
class Rules:
    """When a trial may be pushed, to `<export_dir>/<push_as>/<version>`."""

    push_as: str
    sweep: str
    thresholds: dict[str, dict[str, float]]  # for means over seeds
    # Of the candidate; if it is empty, the one with the lowest mean ID error.
    setting: dict[str, Any] = field(default_factory=dict)
    min_seeds: int = 1  # finished trials that a setting must have

    def list_thresholds(self) -> dict[str, Rule]:
        """Returns the rule of each score, in the order of the file."""
        return {
            score: Rule(
                bounds.get("above", -math.inf), bounds.get("below", math.inf)
            )
            for score, bounds in self.thresholds.items()
        }


def make_rules(content: Mapping[str, Any]) -> Rules:
    """Makes rules from `profile.toml`; a RunError names invalid ones."""
    try:
        rules = Rules(**content)
    except TypeError as error:  # names that are missing or unknown
        reason = str(error).removeprefix("Rules.__init__() ")
        raise RunError(f"--profile: profile.toml: {reason}") from error
    for name, hint in get_type_hints(Rules).items():
        kind, value = get_origin(hint) or hint, getattr(rules, name)
        if not isinstance(value, kind):
            rule = f"{name} must be {KINDS[kind]}, got {value!r}"
            raise RunError(f"--profile: {rule}")
    name = rules.push_as
    if not name or name.startswith(".") or set(name) & set("/\\\0"):
        rule = "must be a plain name without a path, and begin with no dot"
        raise RunError(f"--profile: push_as {rule}, got {name!r}")
    bounds = rules.thresholds.values()
    if not bounds or not all(map(_is_bounds, bounds)):
        rule = "must name scores with bounds, as {id_mse = {below = 0.05}}"
        raise RunError(f"--profile: thresholds {rule}, got {rules.thresholds}")
    return rules


def _is_bounds(bounds: object) -> bool:
    return (
        isinstance(bounds, dict)
        and bool(bounds)
        and set(bounds) <= {"below", "above"}
        and all(isinstance(bound, int | float) for bound in bounds.values())
    )


def choose_setting(trials: DataFrame, rules: Rules) -> DataFrame:
    """Returns the trials of the chosen setting, the candidate first."""
    wanted = {name: _read_value(x) for name, x in rules.setting.items()}
    settings = [
        {name: _read_value(x) for name, x in setting.items()}
        for setting in trials["setting"]
    ]
    rows = trials[[wanted.items() <= found.items() for found in settings]]
    if rows.empty:
        rule = f"has no trials with {rules.setting}"
        raise RunError(f"the sweep {rules.sweep} {rule}")
    rows = rows.assign(error=rows.get(CHOOSE_BY, math.nan))
    rows = rows[(rows["status"] == "finished") & rows["error"].notna()]
    groups = [g for _, g in rows.groupby(rows["setting"].map(repr), sort=False)]
    complete = [group for group in groups if len(group) >= rules.min_seeds]
    if not complete:
        most = max(map(len, groups), default=0)
        reasons = [reason for reason in trials["reason"] if reason]
        raise RunError(
            f"min_seeds is {rules.min_seeds}, but a setting of {rules.sweep} "
            f"has at most {most} finished trials with {CHOOSE_BY}"
            + (f"; one failed: {reasons[0]}" if reasons else "")
        )
    best = min(complete, key=lambda group: group["error"].mean())
    return best.sort_values("error", kind="stable")


def _read_value(value: object) -> float | str:
    # A number in a profile is text in a table: 0 and 0.0 are equal.
    try:
        return float(str(value))
    except ValueError:
        return str(value)


@dataclass(frozen=True)
class Profile:
    """A profile with all of its flags resolved."""

    name: str
    parts: dict[str, list[str]]  # flags of sweeps and searches, by flagfile
    rules: Rules
    code: str = ""  # hash of all sources, and versions of libraries

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def parse_profile(text: str) -> Profile:
    """Parses the result of `Profile.to_json`."""
    fields = json.loads(text)
    return Profile(**{**fields, "rules": make_rules(fields["rules"])})


def load_profile(name: str, plugins: str = "") -> Profile:
    """Reads and checks a shipped profile or the one of a folder."""
    file = _find_rules(name)
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"--profile: {file} cannot be read: {error}") from error
    shipped = content.pop("flagfiles", None)
    files = FLAGFILES / str(shipped) if shipped else file.parent
    parts: dict[str, list[str]] = {}
    given = [f"--plugins={plugins}"] if plugins else []
    for path in sorted(files.glob("*.flags")):
        arguments = [f"--flagfile={path}", *given]
        parts[path.stem] = flagfiles.expand_flagfiles(arguments)
    profile = Profile(file.parent.name, parts, make_rules(content))
    sources = hash_modules(["tfcomp", "pipelines", *check_profile(profile)])
    code = " ".join([sources, *map(version, LIBRARIES)])
    return dataclasses.replace(profile, code=code)


def _find_rules(name: str) -> Path:
    # `smoke` is a shipped one, `./smoke` and `smoke/` are the user's.
    folders = [Path(name)] if os.sep in name else [SHIPPED / name, Path(name)]
    for folder in folders:
        # Not `Path.is_file`, which raises for a name that is too long.
        if name and os.path.isfile(folder / RULES_FILE):
            return folder.resolve() / RULES_FILE
    shipped = ", ".join(sorted(path.name for path in SHIPPED.iterdir()))
    rule = f"must be one of {shipped}, or a folder with a {RULES_FILE}"
    raise ConfigError("profile", rule, name)


def check_profile(profile: Profile) -> list[str]:
    """Checks sweeps and searches, and returns the plugins that it imports."""
    works = make_works(profile)
    if len({work.folder for work in works}) < len(works):
        raise RunError("--profile: two flagfiles have the same --run_name")
    sweeps = {w.folder.name: w for w in works if isinstance(w, Sweep)}
    if profile.rules.sweep not in sweeps:
        raise RunError(
            f"--profile: the candidate's sweep must be one of "
            f"{', '.join(sweeps)}, got {profile.rules.sweep!r}"
        )
    import pandas as pd

    # There must be a candidate if all trials finish.
    finished = {"status": "finished", "reason": "", CHOOSE_BY: 0.0}
    trials = sweeps[profile.rules.sweep].items
    table = pd.DataFrame([{"setting": t.setting, **finished} for t in trials])
    try:
        choose_setting(table, profile.rules)
    except RunError as error:
        raise RunError(f"--profile: {error}") from error
    configs = [trial.config for s in sweeps.values() for trial in s.items]
    return sorted({n for c in configs for n in split_names(c.plugins)})


def make_works(
    profile: Profile, *places: str, data: str | Path = ""
) -> list[Workload]:
    """Makes sweeps and searches, with flags for all; sweeps read `data`."""
    from reproduction.plans import THRESHOLD, make_work

    works = []
    for name, flags in profile.parts.items():
        is_read = bool(data) and not name.startswith(THRESHOLD)
        examples = [f"--examples_dir={data}"] if is_read else []
        works.append(make_work(name, [*flags, *places, *examples]))
    return works
