"""Names of runs by their settings, and what a title says of them."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tfcomp.config.run_config import RunConfig
from tfcomp.statistics.seed_statistics import IGNORED
from tfcomp.statistics.setting_table import choose_flags, make_label

Settings = Mapping[str, Any]

# Flags in a subtitle, and their words.
SUBTITLE = {
    "dataset": "dataset",
    "region": "held out",
    "encoding": "code",
    "model": "model",
    "depth": "depth",
    "epochs": "epochs",
}
MAX_FLAGS = 2  # that replace the name which the user gave to a run


@dataclasses.dataclass(frozen=True)
class RunName:
    """The name of a run among others, and the setting that it is a seed of."""

    name: str
    setting: str


def name_runs(configs: Sequence[RunConfig]) -> list[RunName]:
    """Names runs by the flags in which they differ, as `depth 2, seed 0`.

    Runs keep the names that users gave them if more than two flags differ.
    """
    flags = [config.identity() for config in configs]
    own = [RunName(config.run_name, config.run_name) for config in configs]
    others = [name for name in flags[0] if name not in IGNORED]
    varied = [n for n in others if len({str(f.get(n)) for f in flags}) > 1]
    is_trial = all(is_hash(config.run_name) for config in configs)
    if len(varied) > MAX_FLAGS and not is_trial:
        return own
    chosen = choose_flags([{n: f.get(n) for n in varied} for f in flags])
    settings = [make_label(f, chosen) for f in flags]
    if len({*settings}) < len(flags):
        chosen = [*chosen, "seed"]
    names = [make_label(f, chosen) for f in flags]
    if len({*map(to_file_name, names)}) < len(names):
        return own
    return list(map(RunName, names, settings))


def is_hash(name: str) -> bool:
    """Returns True for the name of a trial of a sweep."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def to_file_name(name: str) -> str:
    """Returns a name with no characters that a file name cannot have."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_")


def describe_common(settings: Sequence[Settings]) -> str:
    """Describes data, held-out region and model that all settings share."""
    first, parts = settings[0], []
    for flag, word in SUBTITLE.items():
        value = first.get(flag)
        if value in (None, "") or any(s.get(flag) != value for s in settings):
            continue
        parts.append(
            f"{value} {word}" if flag == "epochs" else f"{word} {value}"
        )
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
