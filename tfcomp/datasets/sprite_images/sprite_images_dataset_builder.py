"""TFDS builder of sprites with held-out factor combinations."""

import dataclasses

from tfcomp.datasets.table_builder import TableBuilder, TableConfig


@dataclasses.dataclass
class SpritesConfig(TableConfig):
    """Settings of one configuration; the names are those of the flags."""

    dataset: str = "sprites"
    region: str = "montero:element"
    grid_size: int = 64
    sprite_sizes: str = "3,3,6,8,8"


class Builder(TableBuilder):
    """The factor table and the renderer of `--dataset=sprites`."""

    name = "sprite_images"
    BUILDER_CONFIGS = [
        SpritesConfig(name="gray", description="Five factors, one channel."),
        SpritesConfig(
            name="hue",
            sprite_sizes="3,3,6,8,8,6",
            description="Six factors, three channels.",
        ),
    ]
