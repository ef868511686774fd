"""Whether folders can be made, asked before anything is written."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError

MAX_NAME_BYTES = 255  # of one part of a path, in the usual file systems


def check_run_folders(settings: Mapping[str, Any]) -> None:
    """Checks, from the parsed flags, both folders of a run or a sweep."""
    for flag in ("log_dir", "export_dir"):
        check_folder(flag, os.path.join(settings[flag], settings["run_name"]))


def check_folder(flag: str, path: str) -> None:
    """Refuses a folder that can neither be written nor made, or has no name.

    Raises:
        ConfigError: Naming the flag.
    """
    if not path:
        raise ConfigError(flag, "must name a folder", path)
    absolute = Path(path).absolute()
    if max(len(os.fsencode(p)) for p in absolute.parts) > MAX_NAME_BYTES:
        rule = f"must have names of at most {MAX_NAME_BYTES} bytes"
        raise ConfigError(flag, rule, path)
    nearest = next(filter(os.path.lexists, [absolute, *absolute.parents]))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(flag, "must name a folder that can be written", path)
