"""Results of runs as two tables, without TensorFlow.

    runs, numbers = tfcomp.read_runs("tensorboard_logs")

`runs` has the flags of each run, and `numbers` what `metrics.json` holds, by
`when` (start, end, epoch n), `subset`, `stage` and `name`. docs/outputs.md has
all columns.
"""

from tfcomp.tables.read import (
    Results,
    Sweep,
    load_sweep,
    read_results,
    read_runs,
)

__all__ = [
    "Results",
    "Sweep",
    "load_sweep",
    "read_results",
    "read_runs",
]
