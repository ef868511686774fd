"""Analyzes finished runs.

    tfcomp analyze tensorboard_logs/donut

writes figures (PNG, PDF), the numbers behind them (CSV) and one HTML page.
Several runs are compared side by side.

    tfcomp analyze tensorboard_logs/donut --sections=layers,umap
"""

import hashlib
from pathlib import Path
from typing import Any

from tfcomp.config.command import Command, exit_on_user_error
from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import PLUGIN_FLAG, admit_plugins, import_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, split_names, split_paths
from tfcomp.metrics.manifolds import UMAP_HINT, has_umap
from tfcomp.report.verbalize import is_hash, name_runs, to_file_name
from tfcomp.storage.files import make_folder
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import check_run, match_paths

MAX_LETTERS = 80  # of all names in the name of a folder
FLAGS = {
    "run": ("", "Run folders, patterns with *, separated by commas."),
    "output": ("", "Default <run>/analysis, or analysis_<runs> beside them."),
    "sections": (
        "",
        "Sections, separated by commas; list shows them. Default: all but "
        "umap, which takes half a minute.",
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

    paths = _find_runs(settings["run"])
    configs = [check_run(path) for path in paths]
    default = _name_folder(paths, configs)
    for path, config in zip(paths, configs, strict=True):
        admit_plugins(path, config.plugins, settings["plugins"])
    folder = Path(settings["output"] or default)
    check_folder("output", str(folder))
    sections = choose_sections(split_names(settings["sections"]))

    make_folder(folder)
    with start_tensorflow():
        from tfcomp.metrics.run_analysis import RunAnalysis
        from tfcomp.models.loading import load_run
        from tfcomp.report.report_build import build_report
    runs = [RunAnalysis.of_run(load_run(path)) for path in paths]
    build_report(runs, folder, sections)
    print(f"report  {folder / 'report.html'}")
    if "umap" in sections and not has_umap():
        print(UMAP_HINT)
    return 0


def _find_runs(text: str) -> list[Path]:
    """Returns the folders that `--run` names, which must differ."""
    if not text:
        raise ConfigError("run", "must name a run folder", "")

    paths: list[Path] = []
    for pattern in split_paths(text):
        if "*" in pattern:
            paths += map(Path, match_paths(pattern, "run"))
        else:  # which `check_run` refuses if it does not exist
            paths.append(Path(pattern).expanduser())
    if len({path.resolve() for path in paths}) < len(paths):
        raise ConfigError("run", "must name different runs", text)
    return paths


def _name_folder(paths: list[Path], configs: list[RunConfig]) -> Path:
    """Returns the folder of a report that no flag names."""
    names = [to_file_name(name) for name, _ in name_runs(configs)]
    if len({*names}) < len(names):
        runs = ",".join(map(str, paths))
        raise ConfigError("run", "must name different runs", runs)
    if len(paths) == 1:
        return paths[0] / "analysis"

    parent = paths[0].parent
    if all(is_hash(config.run_name) for config in configs):
        parent = parent.parent  # beside the trials of a sweep
    text = "_".join(names)
    if len(text) > MAX_LETTERS:
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        text = f"{len(paths)}_runs_{digest}"
    return parent / f"analysis_{text}"


main = Command(purpose=__doc__, table=FLAGS, action=analyze_runs)

if __name__ == "__main__":
    exit_on_user_error(main)
