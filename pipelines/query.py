"""Calls a SavedModel in a process that imports TensorFlow alone.

    python -I query.py MODEL < factors.json > images.json

It is run as a file, so that this process imports neither tfcomp nor Keras.
"""

import json
import sys

import tensorflow as tf


def call(folder: str, factors: list) -> list:
    """Calls every signature; returns the images of `serving_default`.

    Args:
        folder: The folder of the SavedModel.
        factors: Points, [n, F].
    """
    model = tf.saved_model.load(folder)
    points = tf.constant(factors, tf.float32)
    answers = {}
    for name, signature in model.signatures.items():
        answers[name] = signature(factors=points)
    images = answers["serving_default"]["image"]
    return images.numpy().tolist()


if __name__ == "__main__":
    answer = call(sys.argv[1], json.load(sys.stdin))
    json.dump(answer, sys.stdout)
