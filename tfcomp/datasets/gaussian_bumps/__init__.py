"""`gaussian_bumps` as a TensorFlow dataset; importing registers it.

train = tfds.load("gaussian_bumps/donut", split="train")
"""

from pathlib import Path

from tfcomp.datasets.table_builder import TableBuilder, TableConfig

REGIONS = {
    "donut": "square:6-22",
    "corner": "corner:14",
    "cross": "cross:11-16",
    "gap": "gap:x:10-16",
    "diagonal": "diagonal:3",
    "all": "none",
}
STRIPES = {"dataset": "stripes", "region": "corner:14", "polarity": "bright"}


class Builder(TableBuilder):
    """The factor table and the renderer of `--dataset=gaussian_bumps`."""

    name = "gaussian_bumps"
    pkg_dir_path = Path(__file__).parent
    BUILDER_CONFIGS = [
        TableConfig(
            name=name,
            description=f"Without {region}.",
            flags={"region": region, "polarity": "bright"},
        )
        for name, region in REGIONS.items()
    ] + [
        TableConfig(
            name=name,
            description=f"All stripes and {num_bumps} ID bumps.",
            flags={**STRIPES, "num_bumps": num_bumps},
        )
        for name, num_bumps in (("stripes", 0), ("stripes_and_bumps", 50))
    ]
