"""The folder of a pipeline on this machine.

pipeline.json   the profile that the pipeline runs, and its result at the end
pipeline.log    all output of the SDK and of the steps
work/           what the steps make: examples, runs, report
kfp/            the SDK's own files: outputs of the steps, its cache
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.running_step import keep_steps_alive
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.storage.files import DamagedFileError, read_json, write_text
from tfcomp.storage.output_folders import LOCK_FILE, check_folder, lock_folder

MARKER = "pipeline.json"


class PipelineRoot:
    """Paths of a pipeline on this machine; ConfigError as `check_path`."""

    def __init__(self, path: str) -> None:
        check_path("pipeline_root", path)
        self.path = Path(path).absolute()
        self.log = self.path / "pipeline.log"
        self.work = self.path / "work"
        self.kfp = self.path / "kfp"

    def check(self, profile: str, resume: bool) -> None:
        """RunError if the folder holds what may not be started or resumed."""
        place = f"--pipeline_root={self.path}"
        if (self.path / MARKER).exists():
            known = self._read_marker()["profile"]
            if known != profile:
                rule = f"holds the profile {known}, not {profile}"
                raise RunError(f"{place} {rule}: choose another")
            if not resume:
                raise RunError(
                    f"{place} holds a pipeline that was interrupted, or has "
                    "changed since: add --resume, or choose another"
                )
        elif self.path.exists() and set(os.listdir(self.path)) - {LOCK_FILE}:
            raise RunError(
                f"--pipeline_root must be new or hold a pipeline, {self.path} "
                "holds something else"
            )

    def read_result(self, inputs: Mapping[str, str]) -> list[str]:
        """What a finished pipeline of such inputs, still whole, has printed."""
        try:
            marker = self._read_marker()
        except RunError:
            return []
        is_same = marker.get("inputs") == dict(inputs)
        is_whole = (self.work / "report" / "report.html").exists()
        return marker.get("result", []) if is_same and is_whole else []

    def write_result(
        self, profile: str, inputs: Mapping[str, str], lines: Sequence[str]
    ) -> None:
        """Notes that the pipeline is finished, of which inputs, and how."""
        content = {"profile": profile, "inputs": inputs, "result": lines}
        write_text(self.path / MARKER, json.dumps(content) + "\n")

    @contextmanager
    def claim(self, profile: str) -> Iterator[None]:
        """Keeps the folder, unless it is in use, and the steps alive."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = lock_folder(self.path)
        except OSError as error:
            rule = "--pipeline_root must be writable"
            raise RunError(f"{rule}: {error}") from error
        content = json.dumps({"profile": profile}) + "\n"
        with lock, keep_steps_alive(self.path):
            write_text(self.path / MARKER, content)
            yield

    def _read_marker(self) -> dict[str, Any]:
        marker = self.path / MARKER
        try:
            content = read_json(marker)
            return content | {"profile": str(content["profile"])}
        except (OSError, DamagedFileError, LookupError) as error:
            rule = 'cannot be read, it must be {"profile": NAME}'
            raise RunError(f"--pipeline_root: {marker} {rule}") from error


def check_path(flag: str, path: str) -> None:
    """ConfigError for folders that cannot be written or that the SDK damages.

    It replaces every `python3` in a command, of which paths are a part.
    """
    check_folder(flag, path)
    if "python3" in str(Path(path).absolute()):
        rule = "must not have python3 in its absolute path"
        raise ConfigError(flag, rule, path)
