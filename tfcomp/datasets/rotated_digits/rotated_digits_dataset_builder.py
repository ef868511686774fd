"""TFDS builder of rotated digits with a gap in their angles."""

import dataclasses

from tfcomp.datasets.table_builder import TableBuilder, TableConfig


@dataclasses.dataclass
class DigitsConfig(TableConfig):
    """Settings of one configuration; the names are those of the flags."""

    dataset: str = "rotated_digits"
    region: str = "gap:angle:160-200"
    num_angles: int = 1000
    digit_source: str = "mnist"
    digit_class: int = 4
    digit_classes: str = ""
    digit_index: int = 0


class Builder(TableBuilder):
    """The angles and the renderer of `--dataset=rotated_digits`."""

    name = "rotated_digits"
    BUILDER_CONFIGS = [
        DigitsConfig(name="mnist", description="The first MNIST 4."),
        DigitsConfig(
            name="stand_in",
            digit_source="stand_in",
            description="A drawn 4, not MNIST; needs no data.",
        ),
    ]
