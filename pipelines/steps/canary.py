"""Queries a SavedModel with TensorFlow alone.

    python -I canary.py MODEL REQUESTS ANSWERS

Run as a file, so that this process does not know tfcomp. REQUESTS is an `.npz`
of factor tables [n, F]; ANSWERS has arrays `<signature>/<request>/<output>`.
"""

import sys
from collections.abc import Sequence

SIGNATURES = ("serving_default", "activations", "geometry")
BLOCKED = ("tfcomp", "pipelines", "keras", "tf_keras")  # not for serving


def main(arguments: Sequence[str]) -> None:
    """Loads the model, queries every signature, writes the answers."""
    model_dir, requests_file, answers_file = arguments
    # None makes an import fail. TensorFlow would import Keras.
    sys.modules.update(dict.fromkeys(BLOCKED))  # type: ignore[arg-type]
    import numpy as np
    import tensorflow as tf

    model = tf.saved_model.load(model_dir)
    missing = set(SIGNATURES) - set(model.signatures)
    if missing:
        sys.exit(f"no signature {', '.join(sorted(missing))}")
    answers = {}
    requests = np.load(requests_file)
    for signature in SIGNATURES:
        query = model.signatures[signature]
        for name in requests.files:
            outputs = query(factors=tf.constant(requests[name]))
            for output, value in outputs.items():
                answers[f"{signature}/{name}/{output}"] = value.numpy()
    np.savez(answers_file, **answers)


if __name__ == "__main__":
    main(sys.argv[1:])
