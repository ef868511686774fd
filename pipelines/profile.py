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
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pipelines.rules import Rules, choose_setting, make_rules
from tfcomp.config import flagfiles
from tfcomp.config.data_hash import find_data_dir
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import split_names
from tfcomp.config.run_flags import parse_flags
from tfcomp.config.trust import TRUST_FLAGS
from tfcomp.datasets.digits import has_mnist
from tfcomp.storage.code_version import hash_modules
from tfcomp.studies.thresholds import command as thresholds
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
    except (OSError, ValueError) as error:
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
    sweeps = {sweep.folder.name: sweep for sweep in make_sweeps(profile)}
    searches = {part.folder.name for part in make_searches(profile)}
    number = len(profile.sweeps) + len(profile.searches)
    if len({*sweeps, *searches}) < number:
        raise RunError("--profile: two flagfiles have the same --run_name")
    if profile.rules.sweep not in sweeps:
        raise RunError(
            f"--profile: the candidate's sweep must be one of "
            f"{', '.join(sweeps)}, got {profile.rules.sweep!r}"
        )
    _check_candidate(sweeps[profile.rules.sweep], profile.rules)
    configs = [trial.config for s in sweeps.values() for trial in s.items]
    return sorted({n for c in configs for n in split_names(c.plugins)})


def _check_candidate(sweep: Sweep, rules: Rules) -> None:
    """Checks that a sweep has a candidate if all of its trials finish."""
    import pandas as pd

    finished = {"status": "finished", "reason": "", rules.choose_by: 0.0}
    trials = [{"setting": t.setting, **finished} for t in sweep.items]
    try:
        choose_setting(pd.DataFrame(trials), rules)
    except RunError as error:
        raise RunError(f"--profile: {error}") from error


def replace_missing_digits(profile: Profile) -> Profile:
    """Uses drawn digits, with a note, in sweeps that lack their MNIST."""
    sweeps = []
    for arguments in profile.sweeps:
        settings = parse_flags(arguments, define_flags())
        folder = find_data_dir(settings["data_dir"])
        source = settings["dataset"], settings["digit_source"]
        if source == ("rotated_digits", "mnist") and not has_mnist(folder):
            arguments = [*arguments, "--digit_source=stand_in"]
            name = settings["run_name"]
            print(f"note     {name}: drawn digits, no MNIST in {folder}")
        sweeps.append(arguments)
    return dataclasses.replace(profile, sweeps=sweeps)


def make_sweeps(profile: Profile, *places: str) -> list[Sweep]:
    """Makes the sweeps of a profile, with flags for all, as `--log_dir=`."""
    with redirect_stdout(io.StringIO()):  # the messages of the command
        return [
            make_sweep(parse_flags([*arguments, *places], define_flags()))
            for arguments in profile.sweeps
        ]


def make_searches(
    profile: Profile, *places: str
) -> list[thresholds.ThresholdSearches]:
    """Makes the threshold searches of a profile; as `make_sweeps`."""
    with redirect_stdout(io.StringIO()):
        return [
            thresholds.make_searches(
                parse_flags([*arguments, *places], thresholds.define_flags())
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
