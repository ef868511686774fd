"""Datasets: a table of factor combinations and a renderer.

Plugins register builders of datasets, `make(config)`, in `DATASETS`, and kinds
of regions in `REGIONS`: `make(arguments, space)`, with the text of `--region`.
"""

import tfcomp.datasets.published
import tfcomp.datasets.synthetic
import tfcomp.datasets.tables
from tfcomp.datasets.dataset import DATASETS, Dataset, make_dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import REGIONS, Region, parse_region
from tfcomp.datasets.splits import Splits, make_splits
