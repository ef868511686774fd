"""Datasets: a table of factor combinations and a renderer.

What a plugin needs for a dataset or a region of its own is here. A builder
is called as `make(config)` and returns a `Dataset`; register it under a name
for `--dataset`:

    from tfcomp.datasets import DATASETS

    @DATASETS.register("my_shapes")
    def make_my_shapes(config): ...

A kind of region is called as `make(arguments, space)`, with what follows its
name in `--region`, and is registered in `REGIONS`.
"""

from tfcomp.datasets.dataset import DATASETS, Dataset, make_dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import REGIONS, Region, parse_region
from tfcomp.datasets.splits import Splits, make_splits

_PIXELS = "tfcomp.datasets.bumps_and_stripes"
DATASETS.register("gaussian_bumps", f"{_PIXELS}:make_bumps")
DATASETS.register("stripes", f"{_PIXELS}:make_stripes")
DATASETS.register("rotated_digits", "tfcomp.datasets.digits:make_digits")
DATASETS.register("table", "tfcomp.datasets.tables:make_table")
DATASETS.register("sprites", "tfcomp.datasets.sprites:make_sprites")
DATASETS.register("composed", "tfcomp.datasets.sprites:make_composed")
for _module, _kinds in {
    "region_lists": ("random", "random_box", "file"),
    "named_splits": ("montero", "orthotopic", "wiedemer", "uselis"),
}.items():
    for _kind in _kinds:
        _path = f"tfcomp.datasets.{_module}:make_{_kind}"
        REGIONS.register(_kind, _path)
