"""Writes a trained model in the formats of other programs.

    tfcomp export --run=tensorboard_logs/donut --format=onnx,litert

writes <output>/<run>/<format>/ and README.md, the card of the model.
"""

import os
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.plugins import PLUGIN_FLAG, admit_plugins
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_flags import Command
from tfcomp.config.settings import split_names
from tfcomp.datasets.notes import CARD_FILE, format_model_card
from tfcomp.storage.files import check_folder, write_text
from tfcomp.storage.run_folder import read_config
from tfcomp.training.formats import FORMATS, check_formats, write_format

FLAGS = {
    "run": ("", "The folder of a finished run."),
    "format": ("saved_model", f"Formats: {', '.join(FORMATS.names())}."),
    "output": ("exports", "Models go to <output>/<run>/<format>/."),
    **PLUGIN_FLAG,
}


def export_formats(settings: dict[str, Any]) -> int:
    """Checks the settings, then loads TensorFlow and writes the formats.

    Raises:
        ConfigError: A flag breaks its rule.
        RunError: The run cannot be loaded.
    """
    if not settings["run"]:
        raise ConfigError("run", "must name a run folder", "")
    path = Path(os.path.expanduser(settings["run"]))
    config = read_config(path)
    admit_plugins(path, config.plugins, settings["plugins"])
    # Of a run that was renamed, since another one may have its old name.
    name = os.path.basename(os.path.abspath(path))
    folder = Path(settings["output"], name)
    check_folder("output", str(folder))
    names = split_names(settings["format"])
    check_formats(names)

    with start_tensorflow():
        from tfcomp.models.loading import load_run
        from tfcomp.training.export import describe_methods

        run = load_run(path)
        for name in names:
            print(f"{name:12}{write_format(run, name, folder)}")

        # Formats of earlier calls stay in the folder, and in the card.
        calls = []
        for name in FORMATS.names():
            if (folder / name).exists():
                calls.append(FORMATS.get(name).load().call)
        methods = describe_methods(run.model, run.config, run.dataset)
        card = format_model_card(
            run.config,
            run.dataset,
            run.metrics,
            calls,
            methods,
        )
        write_text(folder / CARD_FILE, card)
    print(f"{'card':12}{folder / CARD_FILE}")
    return 0


main = Command(
    purpose=__doc__,
    table=FLAGS,
    action=export_formats,
)
