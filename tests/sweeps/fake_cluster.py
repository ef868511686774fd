"""Programs that stand for those of SLURM: jobs are processes of this machine.

With a file `refuse` no job is taken, and with a file `broken` none starts.
"""

from pathlib import Path

SUBMIT = """\
#!/bin/bash
if [ -e {folder}/refuse ]; then
    echo "sbatch: error: invalid partition specified: nope" >&2
    exit 1
fi
cp "$1" {folder}/script.$$
if [ ! -e {folder}/broken ]; then
    setsid bash {folder}/script.$$ > {folder}/output.$$ 2>&1 < /dev/null &
fi
echo "Submitted batch job ${{!:-$$}}"
"""
CANCEL = """\
#!/bin/bash
kill -TERM -- -$1
"""


def write_programs(folder: Path) -> Path:
    """Writes `sbatch` and `scancel`; returns the folder for the search path."""
    programs = folder / "bin"
    programs.mkdir()
    for name, text in {"sbatch": SUBMIT, "scancel": CANCEL}.items():
        program = programs / name
        program.write_text(text.format(folder=folder))
        program.chmod(0o755)
    return programs
