"""Renderers: factor values -> images, as TensorFlow ops.

They are pure and vectorized, and work eagerly and inside `tf.data`.
"""

from tfcomp.datasets.renderers.composed_objects import render_composed
from tfcomp.datasets.renderers.gaussian_bump import (
    render_gaussians,
    render_plus,
)
from tfcomp.datasets.renderers.image_rotation import rotate_images
from tfcomp.datasets.renderers.sprite import render_sprites
