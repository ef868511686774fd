"""`sprite_images` as a TensorFlow dataset; importing registers it.

import tensorflow_datasets as tfds
import tfcomp.datasets.sprite_images
train = tfds.load("sprite_images/gray", split="train")
"""

from tfcomp.datasets.sprite_images.sprite_images_dataset_builder import Builder
