"""SavedModels for inference, in TensorFlow Serving's layout.

`<export_dir>/<run_name>/<version>/` loads with TensorFlow alone and has the
signatures

    serving_default   factors [n, F] -> image [n, H, W, C]
    activations       factors [n, F] -> {stage: activation [n, ...]}
    geometry          factors [n, F] -> {stage: metric tensor [n, F, F]}

`card.md` beside them says what the model is.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf

from tfcomp.analysis import compute_stage_metrics
from tfcomp.evaluation.derivatives import choose_jacobian
from tfcomp.evaluation.loading import load_run
from tfcomp.models.stages import make_stage_model
from tfcomp.storage.model_versions import add_version, is_loadable
from tfcomp.training.card import CARD_FILE, format_card

# Hash of the architecture and the weights, in a version's folder.
FINGERPRINT = Path("assets.extra") / "weights.sha256"


def export_model(
    model: keras.Model,
    folder: str | Path,
    jacobian_fn: Callable,
    card: str = "",
) -> Path:
    """Exports the next version, or finds that the last one is this model.

    Args:
        model: A float32 model from factors to image with named stages.
        folder: Parent of the versions; that of the model is returned.
        jacobian_fn: How the `geometry` signature takes derivatives.
        card: The text of `card.md`, if it is to have one.
    """
    digest = hashlib.sha256(model.to_json().encode())
    for weight in model.get_weights():
        digest.update(weight.tobytes())
    fingerprint = digest.hexdigest()

    def write(partial: Path) -> None:
        write_archive(model, partial, jacobian_fn)
        (partial / FINGERPRINT).parent.mkdir(exist_ok=True)
        (partial / FINGERPRINT).write_text(fingerprint)
        if card:
            (partial / CARD_FILE).write_text(card, "utf-8")

    def is_same(version: Path) -> bool:
        file = version / FINGERPRINT
        known = file.read_bytes() if file.exists() else b""
        return known == fingerprint.encode() and is_loadable(version)

    version, _ = add_version(Path(folder), write, is_same)
    return version


def export_run(run: Path, folder: Path) -> Path:
    """Exports the model of a finished run; returns the version's folder.

    Raises:
        RunError: If the run is not finished, or damaged.
    """
    loaded = load_run(run)
    jacobian_fn = choose_jacobian(loaded.model, loaded.dataset.space)
    card = format_card(loaded.config, loaded.dataset, loaded.metrics)
    return export_model(loaded.model, folder, jacobian_fn, card)


def write_archive(
    model: keras.Model, folder: Path, jacobian_fn: Callable
) -> None:
    """Writes a SavedModel with its three signatures."""
    stages = make_stage_model(model)
    signature = [
        tf.TensorSpec((None, model.inputs[0].shape[-1]), name="factors")
    ]
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.track(stages)
    archive.add_endpoint(
        "serving_default", lambda factors: {"image": model(factors)}, signature
    )
    archive.add_endpoint(
        "activations", lambda factors: dict(stages(factors)), signature
    )
    archive.add_endpoint(
        "geometry",
        lambda factors: {
            stage: tf.cast(metric, tf.float32)
            for stage, metric in compute_stage_metrics(
                stages, factors, jacobian_fn
            ).items()
        },
        signature,
    )
    archive.write_out(str(folder), verbose=False)
