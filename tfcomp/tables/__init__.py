"""Results of runs as two tables, without TensorFlow.

    runs, numbers = tfcomp.read_runs("tensorboard_logs", "docs/evidence")

`runs` has a row for each run:

    run        hash of the flags and the seed
    name       its folder; `study` is the sweep, `folder` the whole path
    setting    hash of the flags without the seed: the same for all seeds
    seed       and `round`: 0 below seed 100, 1 below 200, else 2
    ...        every flag; then versions and machine; then `measured_with`, the
               version of the code that measured it

`numbers` has a row for each number:

    run        as in `runs`
    when       start (untrained), end, or epoch n
    subset     of the combinations: id, ood, id_test, ...; else all
    stage      of the network, in the order of the data flow; else empty
    name       as in `metrics.json`, joined by slashes
    value      a float; NaN where the file has a null
"""

from tfcomp.tables.read import (
    Results,
    Sweep,
    load_sweep,
    read_results,
    read_runs,
)

__all__ = ["Results", "Sweep", "load_sweep", "read_results", "read_runs"]
