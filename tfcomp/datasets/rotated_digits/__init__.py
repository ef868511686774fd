"""`rotated_digits` as a TensorFlow dataset; importing registers it.

import tensorflow_datasets as tfds
import tfcomp.datasets.rotated_digits
train = tfds.load("rotated_digits/stand_in", split="train")
"""

from tfcomp.datasets.rotated_digits.rotated_digits_dataset_builder import (
    Builder,
)
