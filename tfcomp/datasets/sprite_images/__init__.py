"""`sprite_images` as a TensorFlow dataset; importing registers it.

train = tfds.load("sprite_images/gray", split="train")
"""

from pathlib import Path

from tfcomp.datasets.table_builder import TableBuilder, TableConfig

GRAY = {"dataset": "sprites", "region": "montero:element", "grid_size": 64}


class Builder(TableBuilder):
    """The factor table and the renderer of `--dataset=sprites`."""

    name = "sprite_images"
    pkg_dir_path = Path(__file__).parent
    BUILDER_CONFIGS = [
        TableConfig(
            name="gray", description="Five factors, one channel.", flags=GRAY
        ),
        TableConfig(
            name="hue",
            description="Six factors, three channels.",
            flags={**GRAY, "sprite_sizes": "3,3,6,8,8,6"},
        ),
    ]
