"""Imports every Keras class of tfcomp, so that saved models can be loaded.

    import keras
    import tfcomp.models.keras_objects
    model = keras.models.load_model("tensorboard_logs/donut/model.keras")

(A SavedModel needs none of this.)
"""
# ruff: noqa: F401

import tfcomp.models.acting
import tfcomp.models.axis_embedding
import tfcomp.models.by_pixel
import tfcomp.models.composed
import tfcomp.models.encodings.population_codes
import tfcomp.models.encodings.scalar_codes
import tfcomp.models.low_rank
import tfcomp.models.low_rank_embedding
import tfcomp.models.pixels
import tfcomp.models.regularizers
