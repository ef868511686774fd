"""Lists published models, or packs a finished run as one.

    tfcomp published
    tfcomp published sprites acting
    tfcomp published --pack=RUN --name=sprites/acting/montero_range

Words are what the names must have, or patterns with *. In Python,
tfcomp.load_published(NAME) gives what tfcomp.load_run gives. To pack writes
<output>/<name>/ with weights, flags, scores, hashes and a card that model hubs
read: a folder to upload as it stands.
"""

import fnmatch
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import make_flags
from tfcomp.statistics.limits import AT_MOST_ONE, POSITIVE
from tfcomp.statistics.seed_statistics import Statistics, compute_statistics
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.published_folder import (
    DEFAULT,
    Published,
    check_name,
    find_source,
    list_published,
)
from tfcomp.storage.run_folder import check_run

FLAGS = {
    "search": ("", "What names must have, separated by commas; or patterns."),
    "source": (
        "",
        "Folder of published models, or its address (file:// or https://); "
        f"default {DEFAULT} here, else that of the clone.",
    ),
    "pack": ("", "The folder of a finished run, to pack it."),
    "name": ("", "Of the model to pack, as sprites/acting/montero_range."),
    "output": (str(DEFAULT), "Where --pack writes <name>/."),
    "half": (False, "Store weights as float16; scores are those of these."),
    "evidence": (
        "",
        "With --pack: finished runs or packed evidence with more seeds of the "
        "same training, for the card; patterns with *, separated by commas.",
    ),
}
HEAD = f"{'name':52}{'weights':>9}{'kB':>7}{'ID':>11}{'OOD':>11}{'OOD R2':>9}"
SEED_SCORES = {
    "id/relative_mse": POSITIVE,
    "ood/relative_mse": POSITIVE,
    "r2/id": AT_MOST_ONE,
    "r2/ood": AT_MOST_ONE,
}
NOTE = "ID and OOD are relative MSE: 1 is the error of a blank image."


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), list_or_pack)


def list_or_pack(settings: dict[str, Any]) -> int:
    """Does what the flags ask for.

    Raises:
        ConfigError: If a flag breaks a rule, or no name fits the search.
        RunError: If there are no models, a file is damaged, or the run cannot
            be packed.
    """
    if settings["pack"]:
        return pack(settings)
    if settings["name"]:
        raise ConfigError("name", "must come with --pack", settings["name"])
    source = find_source(settings["source"])
    words = [w.strip() for w in settings["search"].split(",") if w.strip()]
    found = search(list_published(source), words)
    if not found:
        rule = f"must be part of names in {source}"
        raise ConfigError("search", rule, settings["search"])
    print("\n".join([HEAD, *map(format_row, found)]))
    size = sum(model.size for model in found)
    print(f"{len(found)} models, {size / 1e6:.1f} MB in {source}\n{NOTE}")
    return 0


def search(
    models: Sequence[Published], words: Sequence[str]
) -> list[Published]:
    """The models whose names fit all words."""
    patterns = [w if set(w) & set("*?[") else f"*{w}*" for w in words]
    return [
        model
        for model in models
        if all(fnmatch.fnmatchcase(model.name, p) for p in patterns)
    ]


def format_row(model: Published) -> str:
    """A line of the list."""
    errors = "".join(
        f"{'-' if value is None else format(value, form):>{width}}"
        for value, form, width in (
            (model.id, ".4g", 11),
            (model.ood, ".4g", 11),
            (model.r2, ".3f", 9),
        )
    )
    size = f"{model.weights:9,}{model.size / 1000:7.0f}"
    return f"{model.name:52}{size}{errors}"


def pack(settings: dict[str, Any]) -> int:
    """Packs a run, and prints where it is."""
    if settings["source"]:
        rule = "is where models are listed; --output is where --pack writes"
        raise ConfigError("source", rule, settings["source"])
    check_name(settings["name"])
    check_folder("output", str(Path(settings["output"], settings["name"])))
    path = Path(os.path.expanduser(settings["pack"]))
    config = check_run(path)
    seeds = score_seeds(config, settings["evidence"])
    with start_tensorflow():
        from tfcomp.training.publish import publish_run

        folder = publish_run(
            path,
            settings["name"],
            Path(settings["output"]),
            dtype="float16" if settings["half"] else "float32",
            seeds=seeds,
        )
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{size / 1000:.0f} kB  {folder}")
    return 0


def score_seeds(config: RunConfig, evidence: str) -> dict[str, Statistics]:
    """Scores over the runs of some evidence with the settings of a run.

    Returns:
        Relative MSE and R^2, ID and OOD, by name; nothing of one seed.
    """
    if not evidence:
        return {}
    from tfcomp.studies.claims import read_some_evidence
    from tfcomp.studies.claims.evidence import UNIMPORTANT

    flags = config.to_flags()
    wanted = {k: v for k, v in flags.items() if k not in UNIMPORTANT}
    runs = [r for r in read_some_evidence(evidence).runs if r.setting == wanted]
    by_seed = {run.seed: run for run in runs}
    found = {
        name: compute_statistics(
            [run.get(name) for run in by_seed.values()], limits=limits
        )
        for name, limits in SEED_SCORES.items()
    }
    return {n: s for n, s in found.items() if s and s.count > 1}


if __name__ == "__main__":
    exit_on_user_error(main)
