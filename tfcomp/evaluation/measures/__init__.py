"""Measures: what claims need of a finished run and `metrics.json` lacks.

`measuring.measure_run` computes them (with TensorFlow) and writes
`measures.json`; everything else here is light.
"""

from tfcomp.evaluation.measures.measure_files import MEASURES_FILE
from tfcomp.evaluation.measures.measure_files import is_measured
from tfcomp.evaluation.measures.measure_files import read_measures

__all__ = ["MEASURES_FILE", "is_measured", "read_measures"]
