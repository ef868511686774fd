"""Asks a SavedModel for answers, with TensorFlow alone.

    python -I canary.py MODEL REQUESTS ANSWERS

Run as a file: this process must not know tfcomp. REQUESTS is an `.npz` with a
factor table [n, F] under each name; ANSWERS has an array
`<signature>/<request>/<output>` for each of these.
"""

import gc
import sys
from collections.abc import Sequence

SIGNATURES = ("serving_default", "activations", "geometry")
# A served model must not need them.
BLOCKED = ("tfcomp", "pipelines", "keras", "tf_keras")


def main(arguments: Sequence[str]) -> None:
    """Loads the model, asks every signature, writes the answers."""
    model_dir, requests_file, answers_file = arguments
    # To Python these are modules that cannot be imported. It must be so
    # before TensorFlow comes, which imports Keras if it is there.
    sys.modules.update(dict.fromkeys(BLOCKED))
    gc.disable()  # which would search all that an import makes
    import numpy as np
    import tensorflow as tf

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
