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
    """Paths of a pipeline on this machine.

    Raises:
        ConfigError: If the SDK cannot work there.
    """

    def __init__(self, path: str) -> None:
        check_path("pipeline_root", path)
        self.path = Path(path).absolute()
        self.log = self.path / "pipeline.log"
        self.work = self.path / "work"
        self.kfp = self.path / "kfp"

    def check(self, profile: str, resume: bool) -> None:
        """Refuses a folder in which the pipeline of a profile may not start.

        Raises:
            RunError: If the folder holds something else, another profile,
                or a pipeline (see `read_result`) and `resume` is not set.
        """
        marker = self.path / MARKER
        if marker.exists():
            known = _read_marker(marker)["profile"]
            if known != profile:
                raise RunError(
                    f"--pipeline_root={self.path} holds the profile {known}, "
                    f"not {profile}: choose another"
                )
            if not resume:
                raise RunError(
                    f"--pipeline_root={self.path} holds a pipeline that was "
                    "interrupted, or has changed since: add --resume, or "
                    "choose another"
                )
        elif self.path.exists() and set(os.listdir(self.path)) - {LOCK_FILE}:
            raise RunError(
                f"--pipeline_root must be new or hold a pipeline, {self.path} "
                "holds something else"
            )

    def read_result(self, inputs: Mapping[str, str]) -> list[str]:
        """What a finished pipeline has printed; empty before it is finished.

        Or if it had other inputs, or its report has gone.
        """
        try:
            marker = _read_marker(self.path / MARKER)
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
        """Takes the folder, and keeps the steps alive while it is taken.

        Raises:
            RunError: If the folder cannot be written, or is in use.
        """
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


def _read_marker(marker: Path) -> dict[str, Any]:
    try:
        content = read_json(marker)
        return content | {"profile": str(content["profile"])}
    except (OSError, DamagedFileError, LookupError) as error:
        rule = 'cannot be read, it must be {"profile": NAME}'
        raise RunError(f"--pipeline_root: {marker} {rule}") from error


def check_path(flag: str, path: str) -> None:
    """Refuses folders that cannot be written, and those the SDK damages.

    The SDK replaces every `python3` in a command by the interpreter, and paths
    are part of the command.

    Raises:
        ConfigError: If the path contains `python3`, and as `check_folder`.
    """
    check_folder(flag, path)
    if "python3" in str(Path(path).absolute()):
        rule = "must not have python3 in its absolute path"
        raise ConfigError(flag, rule, path)
