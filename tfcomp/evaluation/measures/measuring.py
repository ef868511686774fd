"""All measures of a finished run, from its trained model."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tfcomp.evaluation.loading import load_run
from tfcomp.evaluation.measures.curve_measures import measure_error_curve
from tfcomp.evaluation.measures.curve_measures import measure_gap
from tfcomp.evaluation.measures.curve_measures import measure_interpolation
from tfcomp.evaluation.measures.measure_files import Measures
from tfcomp.evaluation.measures.measure_files import is_measured
from tfcomp.evaluation.measures.measure_files import read_measures
from tfcomp.evaluation.measures.measure_files import write_measures
from tfcomp.evaluation.measures.output_measures import measure_alignment
from tfcomp.evaluation.measures.output_measures import measure_border
from tfcomp.evaluation.measures.output_measures import measure_superposition
from tfcomp.evaluation.measures.stage_measures import measure_log_volume
from tfcomp.evaluation.measures.stage_measures import measure_tuning
from tfcomp.evaluation.study import Study

# A measure maps a study to numbers by name. It returns none where it has no
# meaning, so that any finished run can be measured.
MEASURES: tuple[Callable[[Study], dict[str, Any]], ...] = (
    measure_border,
    measure_superposition,
    measure_alignment,
    measure_log_volume,
    measure_tuning,
    measure_interpolation,
    measure_gap,
    measure_error_curve,
)


def measure_run(path: str | Path) -> Measures:
    """Measures a finished run and writes `measures.json` into its folder.

    A run that this version of the code has measured is only read.

    Args:
        path: The run folder.

    Returns:
        The content of the file: numbers, null, or lists of them by name.

    Raises:
        RunError: If the folder is no finished run, is damaged, or cannot be
            written.
    """
    path = Path(path)
    if not is_measured(path):
        write_measures(path, measure_study(Study(load_run(path))))
    return read_measures(path)


def measure_study(study: Study) -> Measures:
    """All measures that have a meaning for the run."""
    measures: Measures = {"stages": study.stages}
    for measure in MEASURES:
        measures |= {k: _to_plain(v) for k, v in measure(study).items()}
    return measures


def _to_plain(value: Any) -> Any:
    # JSON has no NaN: a number that does not exist is null.
    if isinstance(value, list):
        return [_to_plain(item) for item in value]
    if value is None or not math.isfinite(value):
        return None
    return float(value)
