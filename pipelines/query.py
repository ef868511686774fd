"""Calls a SavedModel in a process that imports TensorFlow alone.

    python -I query.py MODEL < factors.json > images.json

It is run as a file, so that this process imports neither tfcomp nor Keras.
"""

import json
import sys

import tensorflow as tf


def main() -> None:
    """Calls every signature, and prints the images of `serving_default`."""
    model = tf.saved_model.load(sys.argv[1])
    factors = tf.constant(json.load(sys.stdin), tf.float32)  # [n, F]
    answers = {}
    for name, signature in model.signatures.items():
        answers[name] = signature(factors=factors)
    images = answers["serving_default"]["image"]
    json.dump(images.numpy().tolist(), sys.stdout)


if __name__ == "__main__":
    main()
