"""Measures: what claims need of a finished run and `metrics.json` lacks.

`measure_run` in `tfcomp.measures.run` computes them (with TensorFlow) and
writes `measures.json`; everything else here is light.
"""

from tfcomp.measures.files import MEASURES_FILE
from tfcomp.measures.files import is_measured
from tfcomp.measures.files import read_measures

__all__ = ["MEASURES_FILE", "is_measured", "read_measures"]
