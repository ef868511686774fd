"""TFDS builder of Gaussian bumps with held-out factor combinations."""

import dataclasses

from tfcomp.datasets.table_builder import TableBuilder, TableConfig

REGIONS = {
    "donut": "square:6-22",
    "corner": "corner:14",
    "cross": "cross:11-16",
    "gap": "gap:x:10-16",
    "diagonal": "diagonal:3",
    "all": "none",
}


@dataclasses.dataclass
class BumpsConfig(TableConfig):
    """Settings of one configuration; the names are those of the flags."""

    dataset: str = "gaussian_bumps"
    region: str = "square:6-22"
    num_bumps: int = 0
    grid_size: int = 28
    sigma: float = 1.0
    polarity: str = "bright"


class Builder(TableBuilder):
    """The factor table and the renderer of `--dataset=gaussian_bumps`."""

    name = "gaussian_bumps"
    BUILDER_CONFIGS = [
        BumpsConfig(name=name, region=region, description=f"Without {region}.")
        for name, region in REGIONS.items()
    ] + [
        BumpsConfig(
            name=name,
            dataset="stripes",
            region="corner:14",
            num_bumps=num_bumps,
            description=f"All stripes and {num_bumps} ID bumps.",
        )
        for name, num_bumps in (("stripes", 0), ("stripes_and_bumps", 50))
    ]
