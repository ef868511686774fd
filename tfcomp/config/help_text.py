"""The help of a command: flags in groups, those that people change first."""

from collections.abc import Iterator

from absl import flags

from tfcomp.config.flagfiles import list_flagfiles
from tfcomp.config.run_config import PARTS, RunConfig

COMMON = (
    "dataset region model encoding depth width epochs learning_rate seed "
    "run_name"
).split()
OUTPUT = (
    "log_dir export_dir export pictures resume overwrite eval_every "
    "layerwise_every"
).split()


def format_help(purpose: str, values: flags.FlagValues) -> str:
    """What a command does, its flags, and the flagfiles that it can read."""
    lines = [purpose.strip()]
    for title, names in _list_groups(values):
        lines += ["", f"{title}:"]
        lines += [line for name in names for line in _describe(values[name])]
    lines += ["  --flagfile=FILE", "        Read flags from a file."]
    if shipped := list_flagfiles(values):
        lines.append(f"        Shipped with tfcomp: {', '.join(shipped)}.")
    return "\n".join(lines)


def _list_groups(values: flags.FlagValues) -> Iterator[tuple[str, list[str]]]:
    """Titles and names of flags; each flag of the command once."""
    if "dataset" not in values:  # no flags of a run
        yield "Flags", list(values)
        return
    data, model, training, advanced = (
        [field.name for field in settings.list_settings()]
        for settings in (*PARTS.values(), RunConfig)
    )
    known = {*COMMON, *data, *model, *training, *advanced}
    groups = {
        "Flags that are changed most": COMMON,
        "Flags of this command": [n for n in values if n not in known],
        "Data": data,
        "Model": model,
        "Training": training,
        "Output": OUTPUT,
        "Advanced": advanced,
    }
    shown: set[str] = set()
    for title, names in groups.items():
        yield title, [name for name in names if name not in shown]
        shown.update(names)


def _describe(flag: flags.Flag) -> list[str]:
    default = "" if flag.default == [] else str(flag.default)
    if flag.boolean:
        default = default.lower()
    return [f"  --{flag.name}={default}", f"        {flag.help}"]
