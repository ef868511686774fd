"""`gaussian_bumps` as a TensorFlow dataset; importing registers it.

import tensorflow_datasets as tfds
import tfcomp.datasets.gaussian_bumps
train = tfds.load("gaussian_bumps/donut", split="train")
"""

from tfcomp.datasets.gaussian_bumps.gaussian_bumps_dataset_builder import (
    Builder,
)
