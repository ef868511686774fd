"""Lists published models, or packs a finished run as one.

    tfcomp published
    tfcomp published sprites acting
    tfcomp published --pack=RUN --name=sprites/acting/montero_range
    tfcomp published --pack=SWEEP --name=sprites/{model}/{region}

Words select the models whose names contain them; patterns with * match whole
names. In Python, tfcomp.load_published(NAME) returns the same as
tfcomp.load_run. --pack writes <output>/<name>/ with weights, flags, scores,
hashes and a card that model hubs read: a folder that can be uploaded.
"""

import fnmatch
import os
import re
from pathlib import Path
from typing import Any

from tfcomp.config.command import exit_on_user_error, run_command
from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, split_names
from tfcomp.config.run_flags import make_flags
from tfcomp.statistics.limits import AT_MOST_ONE, POSITIVE
from tfcomp.statistics.seed_statistics import Statistics, compute_statistics
from tfcomp.storage import published_folder
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import FLAGS_FILE, check_run
from tfcomp.storage.run_search import find_runs

FLAGS = {
    "search": ("", "Words in the names, separated by commas; or patterns."),
    "source": (
        "",
        "Folder of published models, or its address (file:// or https://); "
        f"default {published_folder.DEFAULT} here, else in the clone.",
    ),
    "pack": (
        "",
        "Finished runs to pack: folders or patterns with *, separated by "
        "commas.",
    ),
    "name": (
        "",
        "Name of the model to pack, as sprites/acting/montero_range; flags in "
        "braces stand for their values, as {model}/{region}.",
    ),
    "output": (str(published_folder.DEFAULT), "Where --pack writes <name>/."),
    "half": (False, "Store weights as float16, and score these."),
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
NOTE = (
    "ID and OOD are relative MSE: 1 is the error of a blank image, or, where "
    "the data declare no constant ground, of the mean training image."
)


def main(argv: list[str]) -> int:
    """Runs the command and returns its exit status."""
    return run_command(argv, __doc__, make_flags(FLAGS), list_or_pack)


def list_or_pack(settings: dict[str, Any]) -> int:
    """Lists models or packs runs.

    Raises:
        RunError: A model is damaged, or a run cannot be packed.
    """
    if settings["pack"]:
        return pack(settings)
    if settings["name"]:
        raise ConfigError("name", "must come with --pack", settings["name"])
    source = published_folder.find_source(settings["source"])
    words = split_names(settings["search"])
    patterns = [w if set(w) & set("*?[") else f"*{w}*" for w in words]
    models = [
        model
        for model in published_folder.list_published(source)
        if all(fnmatch.fnmatchcase(model.name, p) for p in patterns)
    ]
    if not models:
        rule = f"must be part of names in {source}"
        raise ConfigError("search", rule, settings["search"])
    print("\n".join([HEAD, *map(format_row, models)]))
    size = sum(model.size for model in models)
    print(f"{len(models)} models, {size / 1e6:.1f} MB in {source}\n{NOTE}")
    return 0


def format_row(model: published_folder.Published) -> str:
    """Formats a line of the list."""
    errors = "".join(
        f"{'-':>11}" if error is None else f"{error:11.4g}"
        for error in (model.id, model.ood)
    )
    r2 = f"{'-':>9}" if model.r2 is None else f"{model.r2:9.3f}"
    size = f"{model.weights:9,}{model.size / 1000:7.0f}"
    return f"{model.name:52}{size}{errors}{r2}"


def pack(settings: dict[str, Any]) -> int:
    """Packs runs one after the other and prints their folders."""
    if settings["source"]:
        rule = "is where models are listed; --output is where --pack writes"
        raise ConfigError("source", rule, settings["source"])
    paths = [Path(os.path.expanduser(settings["pack"]))]
    if not paths[0].is_dir() or not (paths[0] / FLAGS_FILE).exists():
        try:
            paths = find_runs(split_names(settings["pack"])) or paths
        except ConfigError as error:
            raise ConfigError("pack", error.rule, error.value) from error
    configs = {path: check_run(path) for path in paths}
    names = {p: fill_name(settings["name"], c) for p, c in configs.items()}
    if len(set(names.values())) < len(names):
        rule = "must have flags in braces by which runs differ, as {region}"
        raise ConfigError("name", rule, settings["name"])
    for name in names.values():
        check_folder("output", str(Path(settings["output"], name)))
    seeds = {p: score_seeds(configs[p], settings["evidence"]) for p in paths}
    with start_tensorflow():
        from tfcomp.training.publish import publish_run
    dtype = "float16" if settings["half"] else "float32"
    for path, name in names.items():
        place = (path, name, Path(settings["output"]))
        folder = publish_run(*place, dtype=dtype, seeds=seeds[path])
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{size / 1000:.0f} kB  {folder}", flush=True)
    return 0


def fill_name(form: str, config: RunConfig) -> str:
    """Fills the flags in braces into a name.

    Raises:
        ConfigError: There is no such flag, or the result is no valid name.
    """
    flags = {
        flag: re.sub("[^a-z0-9.-]+", "_", str(value).lower()).strip("_.-")
        for flag, value in config.to_flags().items()
    }
    try:
        name = form.format_map(flags)
    except (LookupError, ValueError, AttributeError) as error:
        rule = "must have names of flags in its braces, as {model}"
        raise ConfigError("name", rule, form) from error
    published_folder.check_name(name)
    return name


def score_seeds(config: RunConfig, evidence: str) -> dict[str, Statistics]:
    """Computes relative MSE and R^2 over the seeds of the same training.

    Args:
        config: The settings of the training.
        evidence: Finished runs or packed evidence; empty for none.

    Returns:
        Statistics by name of the score, for at least two seeds.
    """
    if not evidence:
        return {}
    from tfcomp.tables import read_results
    from tfcomp.tables.flatten import NO_FLAGS
    from tfcomp.tables.groups import Group

    flags = config.to_flags()
    wanted = {k: v for k, v in flags.items() if k not in NO_FLAGS}
    groups = read_results(split_names(evidence), history=False).groups
    group = next((g for g in groups if g.flags == wanted), Group())
    scores = {}
    for name, limits in SEED_SCORES.items():
        values = group.get(name)
        known = values.tolist() if values.notna().all() else []
        statistics = compute_statistics(known, limits=limits)
        if statistics and statistics.count > 1:
            scores[name] = statistics
    return scores


if __name__ == "__main__":
    exit_on_user_error(main)
