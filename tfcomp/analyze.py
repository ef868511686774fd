"""Analyzes finished runs.

    tfcomp analyze tensorboard_logs/donut

writes figures (PNG, PDF), the numbers behind them (CSV) and one HTML page.
Several runs are compared side by side, and of a sweep one seed of each setting.

    tfcomp analyze tensorboard_logs/donut --sections=layers,umap

With --measure it adds metrics beyond the scores (superposition, kernels,
volumes, tuning, interpolation) to the metrics.json of every run in place of a
report. Sweeps are searched for runs, and measured runs are skipped.
"""

import os
import sys
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import PLUGIN_FLAG, admit_plugins, import_plugins
from tfcomp.config.process import exit_on_user_error, start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import Command, find_value, split_lines
from tfcomp.config.settings import split_names, split_paths
from tfcomp.datasets.splits import remove_seed
from tfcomp.metrics.manifolds import UMAP_HINT, has_umap
from tfcomp.metrics.registry import is_measured
from tfcomp.report.verbalize import is_trial, name_runs, to_file_name
from tfcomp.statistics.seed_statistics import IGNORED
from tfcomp.storage.files import check_folder, make_folder, read_text
from tfcomp.storage.run_folder import (
    SWEEP_FLAGS,
    TRIALS,
    find_runs,
    read_config,
)

MAX_LETTERS = 80  # of all names in the name of a folder
FLAGS = {
    "run": (
        "",
        "Folders of runs or sweeps, patterns with *, by commas.",
    ),
    "output": (
        "",
        "Default analysis in the folder of the run or sweep, or "
        "analysis_<runs> beside several runs.",
    ),
    "sections": (
        "",
        "Sections, separated by commas; list shows them. Default: all but "
        "inversion and umap, which take half a minute each.",
    ),
    "measure": (False, "Add metrics to metrics.json, and write no report."),
    **PLUGIN_FLAG,
}


def analyze_runs(settings: dict[str, Any]) -> int:
    """Checks the runs, then loads TensorFlow and writes the report.

    Args:
        settings: The values of `FLAGS`.

    Raises:
        ConfigError: A flag breaks its rule.
        RunError: A run cannot be loaded.
    """
    if settings["measure"]:
        return measure_runs(settings["run"], settings["plugins"])

    from tfcomp.report.page import choose_sections, describe_sections

    if settings["sections"] == "list":
        import_plugins(settings["plugins"])
        print(describe_sections())
        return 0

    named = _find_folders(settings["run"])
    paths = _list_runs(named)
    configs = list(map(read_config, paths))
    default = named[0] / "analysis"
    if len(named) > 1:
        default = _name_folder(paths, configs)
    for path, config in zip(paths, configs, strict=True):
        admit_plugins(path, config.plugins, settings["plugins"])
    folder = Path(settings["output"] or default)
    check_folder("output", str(folder))
    sections = choose_sections(split_names(settings["sections"]))

    with start_tensorflow():
        from tfcomp.metrics.run_analysis import RunAnalysis
        from tfcomp.models.loading import load_run
        from tfcomp.report.report_build import build_report
    runs = [RunAnalysis.of_run(load_run(path)) for path in paths]
    make_folder(folder)  # a run that is refused leaves nothing behind
    build_report(runs, folder, sections)
    print(f"report  {folder / 'report.html'}")
    if "umap" in sections and not has_umap():
        print(UMAP_HINT)
    return 0


def measure_runs(patterns: str, plugins: str) -> int:
    """Adds metrics to runs that lack them, and prints errors.

    Args:
        patterns: Folders of runs or sweeps, separated by commas.
        plugins: The plugins that the user names, separated by commas.

    Returns:
        The exit status: 1 if a run cannot be measured.

    Raises:
        ConfigError: The patterns match no finished run.
    """
    runs = find_runs(split_paths(patterns), "run")
    if not runs:
        rule = "must match at least one finished run"
        raise ConfigError("run", rule, patterns)
    missing = [path for path in runs if not is_measured(path)]
    count = len(missing)
    print(f"{len(runs)} runs, {count} to measure")
    if not missing:
        return 0

    with start_tensorflow():
        import keras

        from tfcomp.metrics.run_analysis import measure_run
    status = 0
    for number, path in enumerate(missing, 1):
        print(f"[{number}/{count}] {path}", flush=True)
        try:
            config = read_config(path)
            admit_plugins(path, config.plugins, plugins)
            measure_run(path)
        except (ConfigError, RunError) as error:
            print(f"error: {error}", file=sys.stderr)
            status = 1
        keras.backend.clear_session()  # frees the model and its graphs
    return status


def _find_folders(text: str) -> list[Path]:
    """Returns the folders of runs and sweeps that `--run` names."""
    if not text:
        raise ConfigError("run", "must name a run folder", "")

    paths: list[Path] = []
    for pattern in split_paths(text):
        path = Path(pattern).expanduser()
        is_pattern = not set(pattern).isdisjoint("*?[")
        if is_pattern and not os.path.lexists(path):
            paths += find_runs([pattern], "run")
        else:  # `read_config` says what it lacks
            paths.append(path)
    if not paths:
        raise ConfigError("run", "must match at least one finished run", text)
    return paths


def _list_runs(folders: list[Path]) -> list[Path]:
    """Lists runs, and of a sweep the first seed of each setting."""
    paths = []
    for folder in folders:
        if (folder / TRIALS).is_dir():
            paths += _choose_trials(folder)
        else:
            paths.append(folder)

    places = set(map(Path.resolve, paths))
    if len(places) < len(paths):
        runs = ",".join(map(str, folders))
        raise ConfigError("run", "must name different runs", runs)
    return paths


def _choose_trials(sweep: Path) -> list[Path]:
    """Chooses the finished trial with the first seed of each setting."""
    trials = find_runs([str(sweep / TRIALS)], "run")
    if not trials:
        raise ConfigError("run", "must have a finished trial", str(sweep))

    flags = split_lines(read_text(sweep / SWEEP_FLAGS))
    has_coverage = bool(find_value(flags, "coverage"))
    first: dict[str, tuple[int, Path]] = {}
    for path in trials:
        config = read_config(path)
        seed = config.training.seed
        setting = config.identity()
        for name in IGNORED:
            setting.pop(name, None)
        if has_coverage:  # each seed draws a region of its own
            setting["region"] = remove_seed(config.data.region, seed)
        key = str(setting)
        first[key] = min((seed, path), first.get(key, (seed, path)))

    count = f"{len(first)} of {len(trials)} runs"
    print(f"{sweep}: {count}, the first seed of each setting")
    return [path for _, path in first.values()]


def _name_folder(paths: list[Path], configs: list[RunConfig]) -> Path:
    """Returns the folder of a report that no flag names."""
    names = [to_file_name(name) for name, _ in name_runs(configs)]
    if len(set(names)) < len(names):
        runs = ",".join(map(str, paths))
        raise ConfigError("run", "must name different runs", runs)
    parent = paths[0].parent
    if all(is_trial(config.run_name) for config in configs):
        parent = parent.parent  # beside the trials of a sweep
    ending = "_".join(names)[:MAX_LETTERS]
    return parent / f"analysis_{ending}"


main = Command(
    purpose=__doc__,
    table=FLAGS,
    action=analyze_runs,
)

if __name__ == "__main__":
    exit_on_user_error(main)
