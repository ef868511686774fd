"""Names of runs by their settings, and the settings that they share."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tfcomp.config.run_config import RunConfig
from tfcomp.statistics.seed_statistics import IGNORED, choose_flags, make_label

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


def name_runs(configs: Sequence[RunConfig]) -> list[tuple[str, str]]:
    """Returns the names of runs, as `depth 2, seed 0`, and of settings."""
    flags = [config.identity() for config in configs]
    own = [(config.run_name, config.run_name) for config in configs]
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
    return [*zip(names, settings, strict=True)]


def is_hash(name: str) -> bool:
    """Returns True for the name of a trial of a sweep."""
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def to_file_name(name: str) -> str:
    """Returns a name with no characters that a file name cannot have."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_")


def describe_common(settings: Sequence[Mapping[str, Any]]) -> str:
    """Describes data, held-out region and model that all settings share."""
    parts = []
    for flag, word in SUBTITLE.items():
        value, *others = dict.fromkeys(s.get(flag) for s in settings)
        if value in (None, "") or others:
            continue
        words = f"{value} {word}" if flag == "epochs" else f"{word} {value}"
        parts.append(words)
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
