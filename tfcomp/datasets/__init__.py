"""Datasets: a table of factor combinations and a renderer.

A builder is called as `make(config)` and returns a `Dataset`. Register your
own under a name for `--dataset`:

    from tfcomp.datasets import DATASETS

    @DATASETS.register("my_shapes")
    def make_my_shapes(config): ...
"""

from tfcomp.datasets.dataset import DATASETS
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.dataset import make_dataset
from tfcomp.datasets.splits import Splits
from tfcomp.datasets.splits import make_splits

DATASETS.register("gaussian_bumps", "tfcomp.datasets.bumps:make_bumps")
DATASETS.register("stripes", "tfcomp.datasets.stripes:make_stripes")
DATASETS.register("rotated_digits", "tfcomp.datasets.digits:make_digits")

__all__ = ["DATASETS", "Dataset", "Splits", "make_dataset", "make_splits"]
