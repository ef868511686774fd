"""Lists published models, or packs a finished run as one.

    tfcomp published
    tfcomp published sprites acting
    tfcomp published --pack=RUN --name=sprites/acting/montero_range

Words select the models whose names contain all of them. In Python,
tfcomp.load_published(NAME) returns the same as tfcomp.load_run. --pack writes
<output>/<name>/ with weights, flags, scores, hashes and a card that model hubs
read: a folder that can be uploaded.
"""

from pathlib import Path
from typing import Any

from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import split_names
from tfcomp.storage import published_folder
from tfcomp.storage.output_folders import check_folder
from tfcomp.storage.run_folder import check_run

FLAGS = {
    "search": ("", "Words in the names, separated by commas."),
    "source": ("", f"Their folder; default {published_folder.DEFAULT}."),
    "pack": ("", "The folder of a finished run to pack."),
    "name": ("", "Name of the packed model, as sprites/acting/montero_range."),
    "output": (str(published_folder.DEFAULT), "Where --pack writes <name>/."),
}
HEAD = f"{'name':52}{'weights':>9}{'kB':>7}{'ID':>11}{'OOD':>11}{'OOD R2':>9}"
NOTE = (
    "ID and OOD are relative MSE: 1 is the error of a blank image, or, where "
    "the data declare no constant ground, of the mean training image."
)


def list_or_pack(settings: dict[str, Any]) -> int:
    """Lists models or packs a run."""
    if settings["pack"]:
        return _pack(settings)
    if settings["name"]:
        raise ConfigError("name", "must come with --pack", settings["name"])
    source = published_folder.find_source(settings["source"])
    words = split_names(settings["search"])
    models = [
        model
        for model in published_folder.list_published(source)
        if all(word in model.name for word in words)
    ]
    if not models:
        rule = f"must be part of names in {source}"
        raise ConfigError("search", rule, settings["search"])
    print("\n".join([HEAD, *map(_format_row, models)]))
    size = sum(model.size for model in models)
    print(f"{len(models)} models, {size / 1e6:.1f} MB in {source}\n{NOTE}")
    return 0


def _format_row(model: published_folder.Published) -> str:
    cells = [f"{model.name:52}{model.weights:9,}{model.size / 1000:7.0f}"]
    scores = ((model.id, "11.4g"), (model.ood, "11.4g"), (model.r2, "9.3f"))
    for score, form in scores:
        width = form.partition(".")[0]
        cells += [f"{'-':>{width}}" if score is None else format(score, form)]
    return "".join(cells)


def _pack(settings: dict[str, Any]) -> int:
    if settings["source"]:
        rule = "is where models are listed; --output is where --pack writes"
        raise ConfigError("source", rule, settings["source"])
    name, output = settings["name"], Path(settings["output"])
    path = Path(settings["pack"])
    check_run(path)
    published_folder.check_name(name)
    check_folder("output", str(output / name))
    with start_tensorflow():
        from tfcomp.training.publish import publish_run
    folder = publish_run(path, name, output)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{size / 1000:.0f} kB  {folder}")
    return 0


main = Command(__doc__, FLAGS, list_or_pack)
