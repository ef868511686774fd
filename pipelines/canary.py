"""Asks a SavedModel for answers, with TensorFlow alone.

    python -I canary.py MODEL REQUESTS ANSWERS

Run as a file, not imported: this process must not know tfcomp. REQUESTS is
an `.npz` with a factor table [n, F] under each name; ANSWERS has, for each
signature, request and output, an array `<signature>/<request>/<output>`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

SIGNATURES = ("serving_default", "activations", "geometry")
# A served model must not need them.
BLOCKED = ("tfcomp", "pipelines", "keras", "tf_keras")


class Refuse:
    """A finder of modules that refuses those that are blocked."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> None:
        """Raises `ImportError` for a blocked module, else finds nothing."""
        if name.partition(".")[0] in BLOCKED:
            raise ImportError(f"{name} is not there when a model is served")


def main(arguments: Sequence[str]) -> None:
    """Loads the model, asks every signature, writes the answers."""
    model_dir, requests_file, answers_file = arguments
    import numpy as np
    import tensorflow as tf

    # TensorFlow looks where Keras is, and imports it only when it is used.
    sys.meta_path.insert(0, Refuse())
    model = tf.saved_model.load(model_dir)
    missing = set(SIGNATURES) - set(model.signatures)
    if missing:
        sys.exit(f"no signature {', '.join(sorted(missing))}")
    answers = {}
    with np.load(requests_file) as requests:
        for signature in SIGNATURES:
            ask = model.signatures[signature]
            for name, factors in requests.items():
                found = ask(factors=tf.constant(factors))
                for output, value in found.items():
                    answers[f"{signature}/{name}/{output}"] = value.numpy()
    np.savez(answers_file, **answers)


if __name__ == "__main__":
    main(sys.argv[1:])
