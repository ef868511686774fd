"""Writes a trained model in the formats of other programs.

    tfcomp export --run=tensorboard_logs/donut --format=onnx,litert

writes <output>/<run>/<format>/ and a README.md that model hubs read.
"""

import os
from pathlib import Path
from typing import Any

from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import PLUGIN_FLAG, admit_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import split_names
from tfcomp.storage.files import read_text, write_text
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import check_run
from tfcomp.training.formats import FORMATS, check_formats, write_format

FLAGS = {
    "run": ("", "The folder of a finished run."),
    "format": ("saved_model", f"Formats: {', '.join(FORMATS)}."),
    "output": ("exports", "Models go to <output>/<run>/<format>/."),
    **PLUGIN_FLAG,
}


def export_formats(settings: dict[str, Any]) -> int:
    """Checks the settings, then loads TensorFlow and writes the formats."""
    if not settings["run"]:
        raise ConfigError("run", "must name a run folder", "")
    path = Path(os.path.expanduser(settings["run"]))
    config = check_run(path)
    admit_plugins(path, config.plugins, settings["plugins"])
    # Of a run that was renamed, since another one may have its old name.
    name = os.path.basename(os.path.abspath(path))
    folder = Path(settings["output"], name)
    check_folder("output", str(folder))
    names = split_names(settings["format"])
    check_formats(names)
    with start_tensorflow():
        from tfcomp.models.loading import load_run
        from tfcomp.training.export import format_hub_card

        run, readme = load_run(path), folder / "README.md"
        flags = format_hub_card(run, []).partition("## Settings")[2]
        if readme.exists() and flags.strip() not in read_text(readme):
            rule = f"must be another folder: {folder} has another run's models"
            raise ConfigError("output", rule, settings["output"])
        for name in names:
            print(f"{name:12}{write_format(run, name, folder)}")
        calls = [FORMATS[n]["call"] for n in FORMATS if (folder / n).exists()]
        write_text(readme, format_hub_card(run, calls))
    print(f"\nto upload: {folder}")
    return 0


main = Command(__doc__, FLAGS, export_formats)
