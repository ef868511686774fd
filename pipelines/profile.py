"""A profile: what a pipeline trains, and when its model may be pushed.

A profile is a folder with

    profile.toml       the rules of the evaluator, and the name to push to
    threshold*.flags   searches, each a flagfile of `tfcomp study thresholds`
    *.flags            sweeps, each a flagfile of `tfcomp sweep`

or, in `profile.toml`, `flagfiles`: a folder of flagfiles that tfcomp ships. The
steps receive one JSON string in which every flag is resolved.
"""

import dataclasses
import io
import json
import os
import tomllib
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from pipelines.rules import Rules, make_rules
from tfcomp.config import flagfiles
from tfcomp.config.data_hash import find_data_dir
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import parse_flags
from tfcomp.config.trust import TRUST_FLAGS
from tfcomp.datasets.digits import has_mnist
from tfcomp.datasets.materialized import select_settings
from tfcomp.storage.code_version import hash_modules
from tfcomp.studies.thresholds import command as threshold
from tfcomp.sweeps.sweep_run import Sweep, define_flags, make_sweep

PROFILE_FLAG = {
    "profile": (
        "smoke",
        "What to train: smoke, quick, campaign, paper, or your own folder.",
    ),
    **TRUST_FLAGS,
}
SHIPPED = Path(__file__).parent / "profiles"
LIBRARIES = ("tensorflow", "keras", "tensorflow-datasets", "numpy", "kfp")
RULES_FILE = "profile.toml"


@dataclass(frozen=True)
class Profile:
    """A profile with all of its flags resolved."""

    name: str
    sweeps: list[list[str]]  # the flags of each
    searches: list[list[str]]
    rules: Rules
    # Hash of all sources that steps import, and the versions of libraries,
    # which the SDK's cache does not compare by itself.
    code: str = ""
    notes: list[str] = field(default_factory=list)  # for the user

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def load_profile(name: str, trust_plugins: bool = False) -> Profile:
    """Reads and checks a shipped profile or the one of a folder.

    Raises:
        ConfigError: There is no such profile, or a flag is invalid.
        RunError: A file is invalid, or names plugins that are not trusted.
    """
    folder = find_profile(name)
    file = folder / RULES_FILE
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"--profile: {file} cannot be read: {error}") from error
    shipped = content.pop("flagfiles", None)
    files = flagfiles.SHIPPED / str(shipped) if shipped else folder
    sweeps: list[list[str]] = []
    searches: list[list[str]] = []
    for path in sorted(files.glob("*.flags")):
        is_search = path.name.startswith("threshold")
        arguments = flagfiles.expand_flagfiles([f"--flagfile={path}"])
        if trust_plugins:
            arguments = list(map(str, arguments))  # forgets their file
        (searches if is_search else sweeps).append(arguments)
    if not sweeps:
        raise RunError(f"--profile: {files} has no flagfile of a sweep")
    profile = Profile(folder.name, sweeps, searches, make_rules(content))
    sources = hash_modules(["tfcomp", "pipelines", *check_profile(profile)])
    code = " ".join([sources, *map(version, LIBRARIES)])
    return dataclasses.replace(profile, code=code)


def parse_profile(text: str) -> Profile:
    """Parses the result of `Profile.to_json`."""
    fields = json.loads(text)
    return Profile(**{**fields, "rules": make_rules(fields["rules"])})


def check_profile(profile: Profile) -> list[str]:
    """Checks sweeps and searches, and returns the plugins that it imports."""
    sweeps, rules = make_sweeps(profile), profile.rules
    names = [sweep.folder.name for sweep in sweeps]
    searches = [part.folder.name for part in make_searches(profile)]
    for name, number in Counter([*names, *searches]).items():
        if number > 1:
            raise RunError(f"--profile: two flagfiles have --run_name={name}")
    if rules.sweep not in names:
        raise RunError(
            f"--profile: the candidate's sweep must be one of "
            f"{', '.join(names)}, got {rules.sweep!r}"
        )
    # A sweep without a candidate would be trained for hours.
    trials = sweeps[names.index(rules.sweep)].items
    settings = [trial.setting for trial in trials]
    seeds = Counter(map(repr, filter(rules.fits, settings)))
    if not seeds:
        raise RunError(
            f"--profile: no trial of the sweep {rules.sweep} has the setting "
            f"{rules.setting}"
        )
    most = max(seeds.values())
    if most < rules.min_seeds:
        raise RunError(
            f"--profile: min_seeds must be at most {most}, the seeds of the "
            f"sweep {rules.sweep}, got {rules.min_seeds}"
        )
    for sweep in sweeps:
        for trial in sweep.items:
            select_settings(trial.config)  # its dataset can be written
    plugins = ",".join(sweep.items[0].config.plugins for sweep in sweeps)
    return sorted(set(split_names(plugins)))


def replace_missing_digits(profile: Profile) -> Profile:
    """Uses drawn digits in sweeps that want MNIST where there is none."""
    sweeps, notes = [], []
    for arguments in profile.sweeps:
        settings = parse_flags(arguments, define_flags())
        folder = find_data_dir(settings["data_dir"])
        source = settings["dataset"], settings["digit_source"]
        if source == ("rotated_digits", "mnist") and not has_mnist(folder):
            arguments = [*arguments, "--digit_source=stand_in"]
            notes.append(
                f"{settings['run_name']}: drawn digits, since there is no "
                f"MNIST in {folder}"
            )
        sweeps.append(arguments)
    return dataclasses.replace(profile, sweeps=sweeps, notes=notes)


def make_sweeps(profile: Profile, *places: str) -> list[Sweep]:
    """Makes the sweeps of a profile, with flags for all, as `--log_dir=`."""
    with redirect_stdout(io.StringIO()):  # the messages of the command
        return [
            make_sweep(parse_flags([*arguments, *places], define_flags()))
            for arguments in profile.sweeps
        ]


def make_searches(
    profile: Profile, *places: str
) -> list[threshold.ThresholdSearches]:
    """Makes the threshold searches of a profile; as `make_sweeps`."""
    with redirect_stdout(io.StringIO()):
        return [
            threshold.make_searches(
                parse_flags([*arguments, *places], threshold.define_flags())
            )
            for arguments in profile.searches
        ]


def find_profile(name: str) -> Path:
    """Returns the folder of a profile; ConfigError if there is none."""
    # `smoke` is a shipped one, `./smoke` and `smoke/` are the user's.
    folders = [Path(name)] if os.sep in name else [SHIPPED / name, Path(name)]
    for folder in folders:
        # Not `Path.is_file`, which raises for a name that is too long.
        if name and os.path.isfile(folder / RULES_FILE):
            return folder.resolve()
    shipped = ", ".join(sorted(path.name for path in SHIPPED.iterdir()))
    rule = f"must be one of {shipped}, or a folder with a {RULES_FILE}"
    raise ConfigError("profile", rule, name)
