"""Programs that stand for those of SLURM: jobs are processes of this machine.

`FakeSlurm` puts them into a folder. A job takes the id of its process.
With a file `refuse` none is taken, with a file `full` they wait, and each file
`death.*` ends one before its worker starts.
"""

import contextlib
import os
import signal
from pathlib import Path

SUBMIT = """\
#!/bin/bash
if [ -e {folder}/refuse ]; then
    echo "sbatch: error: invalid partition specified: nope" >&2
    exit 1
fi
cp "$1" {folder}/script.$$
touch {folder}/job.$$
(while [ -e {folder}/full ]; do sleep 0.1; done
 [ -e {folder}/job.$$ ] || exit 0
 exec setsid bash {folder}/bin/start $$
) > {folder}/output.$$ 2>&1 < /dev/null &
echo "Submitted batch job $$"
"""
# A job may be cancelled while it is about to start.
START = """\
#!/bin/bash
echo $$ > {folder}/job.$1
if grep -qsx "$1" {folder}/cancelled; then rm -f {folder}/job.$1; exit; fi
for death in {folder}/death.*; do rm "$death" && exit 1; done 2>/dev/null
exec bash {folder}/script.$1
"""
CANCEL = """\
#!/bin/bash
echo "$1" >> {folder}/cancelled
pid=$(cat {folder}/job.$1)
rm -f {folder}/job.$1
[ -z "$pid" ] || kill -TERM -- -$pid
"""
LIST = """\
#!/bin/bash
for job in {folder}/job.*; do
    pid=$(cat "$job" 2>/dev/null)
    if [ -z "$pid" ] || kill -0 $pid 2>/dev/null; then echo "${{job##*.}}"; fi
done
"""


class FakeSlurm:
    """A folder of programs, and what they leave in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = {
            "sbatch": SUBMIT,
            "start": START,
            "scancel": CANCEL,
            "squeue": LIST,
        }
        (folder / "bin").mkdir()
        for name, text in programs.items():
            program = folder / "bin" / name
            program.write_text(text.format(folder=folder))
            program.chmod(0o755)

    def list_scripts(self) -> list[Path]:
        """The jobs that were submitted, the first ones first."""
        found = self.folder.glob("script.*")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def list_pids(self) -> dict[str, int]:
        """Processes of the jobs that were not cancelled."""
        files = self.folder.glob("job.*")
        texts = {file.suffix[1:]: file.read_text() for file in files}
        return {name: int(text) for name, text in texts.items() if text}

    def list_cancelled(self) -> list[str]:
        """Jobs in the order in which they were cancelled."""
        file = self.folder / "cancelled"
        return file.read_text().split() if file.exists() else []

    def clear(self) -> None:
        """Kills what runs."""
        for pid in self.list_pids().values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
