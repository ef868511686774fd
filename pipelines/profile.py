"""A profile: what a pipeline trains, and when its model may be pushed.

A profile is a folder with

    profile.toml       the rules of the evaluator, and the name to push to
    threshold*.flags   searches, each a flagfile of `tfcomp study thresholds`
    *.flags            sweeps, each a flagfile of `tfcomp sweep`

or, in `profile.toml`, `flagfiles`: a folder of flagfiles that tfcomp ships. The
steps receive one JSON string in which every flag is resolved.
"""

import dataclasses
import json
import os
import tomllib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pipelines.rules import Rules, choose_setting, make_rules
from tfcomp.config import flagfiles
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import TRUST_FLAG
from tfcomp.config.run_config import split_names
from tfcomp.storage.code_version import hash_modules
from tfcomp.sweeps.sweep_run import Sweep
from tfcomp.sweeps.workload import Workload

PROFILE_FLAG = {
    "profile": (
        "smoke",
        "What to train: smoke, quick, campaign, paper, or your own folder.",
    ),
    **TRUST_FLAG,
}
SHIPPED = Path(__file__).parent / "profiles"
LIBRARIES = ("tensorflow", "keras", "tensorflow-datasets", "numpy", "kfp")
RULES_FILE = "profile.toml"


@dataclass(frozen=True)
class Profile:
    """A profile with all of its flags resolved."""

    name: str
    parts: dict[str, list[str]]  # flags of sweeps and searches, by flagfile
    rules: Rules
    code: str = ""  # hash of all sources, and versions of libraries

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def load_profile(name: str, trust: bool = False) -> Profile:
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
    parts: dict[str, list[str]] = {}
    for path in sorted(files.glob("*.flags")):
        parts[path.stem] = flagfiles.expand_flagfiles([f"--flagfile={path}"])
        if trust:  # forgets that a file has set them
            parts[path.stem] = list(map(str, parts[path.stem]))
    profile = Profile(folder.name, parts, make_rules(content))
    sources = hash_modules(["tfcomp", "pipelines", *check_profile(profile)])
    code = " ".join([sources, *map(version, LIBRARIES)])
    return dataclasses.replace(profile, code=code)


def parse_profile(text: str) -> Profile:
    """Parses the result of `Profile.to_json`."""
    fields = json.loads(text)
    return Profile(**{**fields, "rules": make_rules(fields["rules"])})


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


def make_works(
    profile: Profile, *places: str, data: str | Path = ""
) -> list[Workload]:
    """Makes the sweeps and searches of a profile.

    Args:
        places: Flags for all of them, as `--log_dir=logs`.
        data: `--examples_dir` of sweeps; searches choose their data as they go.
    """
    from tfcomp.studies.study import SEARCH, make_work

    return [
        make_work(
            name,
            [*flags, *places, f"--examples_dir={data}"]
            if data and not name.startswith(SEARCH)
            else [*flags, *places],
        )
        for name, flags in profile.parts.items()
    ]


def make_sweeps(profile: Profile) -> list[Sweep]:
    """Makes the sweeps of a profile alone."""
    works = make_works(profile)
    return [work for work in works if isinstance(work, Sweep)]


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
