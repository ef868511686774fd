"""Analyzes finished runs.

    tfcomp analyze tensorboard_logs/donut

writes figures (PNG, PDF), the numbers behind them (CSV) and one HTML page.
Several runs are compared side by side.

    tfcomp analyze tensorboard_logs/donut --sections=layers,umap
"""

import hashlib
import os
from pathlib import Path
from typing import Any

from tfcomp.config.command import Command, exit_on_user_error
from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import PLUGIN_FLAG, admit_plugins, import_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import split_names
from tfcomp.datasets import make_dataset
from tfcomp.datasets.views import refine
from tfcomp.metrics.manifolds import UMAP_HINT, has_umap
from tfcomp.report.verbalize import is_hash, name_runs, to_file_name
from tfcomp.storage.files import make_folder
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import check_run

MAX_LETTERS = 80  # of all names in the name of a folder
FLAGS = {
    "run": ("", "Run folders, separated by commas."),
    "output": ("", "Default <run>/analysis, or analysis_<runs> beside them."),
    "sections": (
        "",
        "Sections, separated by commas; list shows them. Default: all but "
        "umap, which takes half a minute.",
    ),
    "between": (
        0,
        "Values of each factor at which errors are shown as well, between "
        "positions of the grid (50 in the published code); 0 for none.",
    ),
    **PLUGIN_FLAG,
}


def analyze_runs(settings: dict[str, Any]) -> int:
    """Checks the runs, then loads TensorFlow and writes the report."""
    from tfcomp.report.page import choose_sections, describe_sections

    if settings["sections"] == "list":
        import_plugins(settings["plugins"])
        print(describe_sections())
        return 0
    paths = [Path(os.path.expanduser(n)) for n in split_names(settings["run"])]
    folder = _choose_folder(paths, settings)
    sections = choose_sections(split_names(settings["sections"]))
    make_folder(folder)
    with start_tensorflow():
        from tfcomp.metrics.run_analysis import RunAnalysis
        from tfcomp.models.loading import load_run
        from tfcomp.report.report_build import build_report
    runs = [RunAnalysis.of_run(load_run(path)) for path in paths]
    build_report(runs, folder, sections, settings["between"])
    print(f"report  {folder / 'report.html'}")
    if "umap" in sections and not has_umap():
        print(UMAP_HINT)
    return 0


def _choose_folder(paths: list[Path], settings: dict[str, Any]) -> Path:
    """Returns the folder of the report after checking it and all runs."""
    if not paths:
        raise ConfigError("run", "must name a run folder", "")
    configs = [check_run(path) for path in paths]
    names = [to_file_name(name) for name, _ in name_runs(configs)]
    folders = {path.resolve() for path in paths}
    if min(len(folders), len({*names})) < len(paths):
        given = ",".join(map(str, paths))
        raise ConfigError("run", "must name different runs", given)
    for path, config in zip(paths, configs, strict=True):
        admit_plugins(path, config.plugins, settings["plugins"])
        if count := settings["between"]:
            refine(make_dataset(config), config.model.encoding, count)
    folder = paths[0] / "analysis"
    if len(paths) > 1:
        parent = paths[0].parent
        if all(is_hash(config.run_name) for config in configs):
            parent = parent.parent  # beside the trials of a sweep
        text = "_".join(names)
        if len(text) > MAX_LETTERS:
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            text = f"{len(paths)}_runs_{digest}"
        folder = parent / f"analysis_{text}"
    folder = Path(settings["output"] or folder)
    check_folder("output", str(folder))
    return folder


main = Command(__doc__, FLAGS, analyze_runs)

if __name__ == "__main__":
    exit_on_user_error(main)
