"""Datasets: a table of factor combinations and a renderer.

Plugins register builders of datasets, `make(config)`, in `DATASETS`, and kinds
of regions in `REGIONS`: `make(arguments, space)`, with the text of `--region`.
"""

from tfcomp.datasets.dataset import DATASETS, Dataset, make_dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import REGIONS, Region, parse_region
from tfcomp.datasets.splits import Splits, make_splits

for _name, _builder in {
    "gaussian_bumps": "synthetic:make_bumps",
    "stripes": "synthetic:make_stripes",
    "sprites": "synthetic:make_sprites",
    "composed": "synthetic:make_composed",
    "rotated_digits": "digits:make_digits",
    "table": "tables:make_table",
}.items():
    DATASETS.register(_name, f"{__name__}.{_builder}")
for _kind in (
    *("random", "random_box", "file"),
    *("montero", "orthotopic", "wiedemer", "uselis"),
):
    REGIONS.register(_kind, f"{__name__}.region_kinds:make_{_kind}")
