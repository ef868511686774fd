"""`rotated_digits` as a TensorFlow dataset; importing registers it.

train = tfds.load("rotated_digits/stand_in", split="train")
"""

from pathlib import Path

from tfcomp.datasets.table_builder import TableBuilder, TableConfig

MNIST = {"dataset": "rotated_digits", "region": "gap:angle:160-200"}


class Builder(TableBuilder):
    """The angles and the renderer of `--dataset=rotated_digits`."""

    name = "rotated_digits"
    pkg_dir_path = Path(__file__).parent
    BUILDER_CONFIGS = [
        TableConfig(
            name="mnist", description="The first MNIST 4.", flags=MNIST
        ),
        TableConfig(
            name="stand_in",
            description="A drawn 4, not MNIST; needs no data.",
            flags={**MNIST, "digit_source": "stand_in"},
        ),
    ]
