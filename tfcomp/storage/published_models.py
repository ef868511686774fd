"""Finds published models, which are run folders that come with a clone.

`saved_models/published/<name>/` has the `run.flags`, `metrics.json` and
`model.keras` of a run. `load_run` reads it as any other run.
"""

from pathlib import Path

from tfcomp.config.errors import RunError, suggest
from tfcomp.storage.run_folder import METRICS_FILE

DEFAULT = Path("saved_models", "published")
CLONE = Path(__file__).parents[2]


def list_published(source: str | Path = "") -> list[str]:
    """Lists the names of published models, for `load_published`.

    Args:
        source: A folder that contains finished runs, at any depth. The default
            is `saved_models/published` of the working directory, else of the
            clone that tfcomp runs from.

    Returns:
        Paths of the models in this folder, sorted, as `bumps/cnn/corner_9`.

    Raises:
        RunError: If there is no such folder, or no model in it.

    Example:
        >>> "paper/donut" in tfcomp.list_published()
        True
    """
    folder = _find_folder(source)
    files = folder.rglob(METRICS_FILE)
    names = sorted(file.parent.relative_to(folder).as_posix() for file in files)
    if not names:
        raise RunError(f"no published models in {folder}")
    return names


def find_published(name: str, source: str | Path = "") -> Path:
    """Returns the folder of a published model.

    Args:
        name: A name that `list_published` returns.
        source: As in `list_published`.

    Raises:
        RunError: If there is no such model.
    """
    names = list_published(source)
    if name not in names:
        hint = suggest(name, names) or ": tfcomp.list_published() has the names"
        raise RunError(f"{name!r} is not a published model{hint}")
    return _find_folder(source) / name


def _find_folder(source: str | Path) -> Path:
    if source:
        return Path(source).expanduser()
    for folder in (DEFAULT, CLONE / DEFAULT):
        if folder.is_dir():
            return folder
    raise RunError(
        "published models come with a clone of the repository, not with the "
        f"installed package: work in a clone, or name its {DEFAULT} as source"
    )
