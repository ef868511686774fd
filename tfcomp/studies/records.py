"""What trainings gave, a file each: a study that was killed goes on from them.

A file is named by a hash of what decides its content, the flags and the code.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfcomp.config.run_config import RunConfig
from tfcomp.storage.code_version import compute_code_version, hash_modules
from tfcomp.storage.files import DamagedFileError, read_json, write_text
from tfcomp.sweeps.grid import compute_hash

Record = dict[str, Any]


class Records:
    """Recorded trainings, in a folder that need not exist.

    Args:
        modules: What trains and measures, beside what decides a run.
        *more: What else decides a record.
    """

    def __init__(
        self, folder: Path, modules: Sequence[str], *more: object
    ) -> None:
        self.folder, self._modules, self._more = folder, modules, more

    def read(self, config: RunConfig) -> Record | None:
        """What a training gave; None if it is to be done."""
        try:
            return read_json(self.locate(config))
        except (FileNotFoundError, DamagedFileError):
            return None

    def write(self, config: RunConfig, record: Record) -> None:
        """Records a training in one step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, sort_keys=True, allow_nan=False) + "\n"
        write_text(self.locate(config), text)

    def locate(self, config: RunConfig) -> Path:
        """The file of a training."""
        code = compute_code_version(config.plugins)
        code += hash_modules(self._modules)
        words = " ".join([code, *map(repr, self._more)])
        return self.folder / f"{compute_hash(config, words)}.json"
