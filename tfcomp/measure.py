"""Measures finished runs.

    tfcomp measure tensorboard_logs/donut*

adds metrics that the claims need beyond the scores (superposition, kernels,
volumes, tuning, interpolation) to the metrics.json of every run, as `measures`.
Sweeps are searched for runs. Measured runs are skipped.
"""

import sys
from pathlib import Path
from typing import Any

from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.plugins import PLUGIN_FLAG, admit_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import split_paths
from tfcomp.metrics.registry import is_measured
from tfcomp.storage.run_folder import check_run, find_runs

FLAGS = {
    "runs": ("", "Run folders or folders of them (sweeps); patterns with *."),
    **PLUGIN_FLAG,
}


def measure_runs(settings: dict[str, Any]) -> int:
    """Measures the runs that need it; imports TensorFlow only for them."""
    runs = find_runs(split_paths(settings["runs"]))
    if not runs:
        rule = "must match at least one finished run"
        raise ConfigError("runs", rule, settings["runs"])
    missing = [path for path in runs if not is_measured(path)]
    print(f"{len(runs)} runs, {len(missing)} to measure")
    if missing and measure_all(missing, settings["plugins"]):
        return 1
    return 0


def measure_all(paths: list[Path], plugins: str) -> int:
    """Measures runs one by one, and prints errors.

    Args:
        paths: Folders of finished runs.
        plugins: The plugins that the user names, separated by commas.

    Returns:
        The number of runs that cannot be measured.
    """
    with start_tensorflow():
        import keras

        from tfcomp.metrics.run_analysis import measure_run
    failed = 0
    for number, path in enumerate(paths, 1):
        print(f"[{number}/{len(paths)}] {path}", flush=True)
        try:
            admit_plugins(path, check_run(path).plugins, plugins)
            measure_run(path)
        except (ConfigError, RunError) as error:
            print(f"error: {error}", file=sys.stderr)
            failed += 1
        keras.backend.clear_session()  # frees the model and its graphs
    return failed


main = Command(purpose=__doc__, table=FLAGS, action=measure_runs)
