"""Exports SavedModels for inference, in TensorFlow Serving's layout.

`<export_dir>/<run_name>/<version>/` needs TensorFlow alone. Its signatures:

    serving_default   factors [n, F] -> image [n, H, W, C]
    activations       factors [n, F] -> {stage: activation [n, ...]}
    geometry          factors [n, F] -> {stage: metric tensor [n, F, F]},
                      of the ordered factors alone

`card.md` beside them describes the model; on hubs it is `README.md`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import keras
import tensorflow as tf

from tfcomp import __version__
from tfcomp.analysis.jacobians import compute_stage_metrics
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.notes import describe_copies, format_share
from tfcomp.evaluation.derivatives import choose_jacobian
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.models.decoders.acting import describe_pose_terms
from tfcomp.models.stages import make_stage_model
from tfcomp.storage.output_folders import add_version
from tfcomp.storage.run_folder import select_scores

CARD_FILE = "card.md"
TEMPLATE = Path(__file__).with_name("templates") / CARD_FILE
# Hash of the architecture and the weights, in a version's folder.
FINGERPRINT = Path("assets.extra") / "weights.sha256"


def export_scored(
    model: keras.Model,
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    folder: str | Path = "",
    steps: Sequence[str] | None = None,
) -> Path:
    """Exports a model with its card, by default to the run's export folder."""
    jacobian_fn = choose_jacobian(model, dataset, steps)
    card = format_card(config, dataset, metrics)
    return export_model(model, folder or config.export_path, jacobian_fn, card)


def export_model(
    model: keras.Model,
    folder: str | Path,
    jacobian_fn: Callable,
    card: str = "",
) -> Path:
    """Exports the next version, unless the last one is the same model."""
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
        return file.exists() and file.read_text() == fingerprint

    version, _ = add_version(Path(folder), write, is_same)
    return version


def write_archive(
    model: keras.Model, folder: Path, jacobian_fn: Callable
) -> None:
    """Writes a SavedModel with its three signatures."""
    stages = make_stage_model(model)
    width = model.inputs[0].shape[-1]

    def check(factors: tf.Tensor) -> tf.Tensor:
        message = f"factors must be [n, {width}]"
        shape = tf.shape(factors)
        rule = tf.debugging.assert_equal(shape[1], width, message)
        with tf.control_dependencies([rule]):
            return tf.ensure_shape(tf.identity(factors), (None, width))

    def measure_geometry(factors: tf.Tensor) -> dict[str, tf.Tensor]:
        # Some CPU kernels cannot differentiate convolutions of no images.
        count = tf.shape(factors)[0]
        missing = tf.cast(count == 0, tf.int32)
        padded = check(tf.pad(factors, [[0, missing], [0, 0]]))
        metrics = compute_stage_metrics(stages, padded, jacobian_fn)
        return {n: tf.cast(m[:count], tf.float32) for n, m in metrics.items()}

    endpoints = {
        "serving_default": lambda factors: {"image": model(check(factors))},
        "activations": lambda factors: dict(stages(check(factors))),
        "geometry": measure_geometry,
    }
    # TensorFlow does not check the shapes of arguments, but `check` does.
    signature = tf.TensorSpec((None, width), name="factors")
    # Functions with a signature, as Keras has them, are traced again to be
    # saved, but concrete ones are not.
    archive, functions = tf.Module(), {}
    for name, endpoint in endpoints.items():
        function = tf.function(endpoint, autograph=False)
        functions[name] = function.get_concrete_function(signature)
        setattr(archive, name, functions[name])
    archive.weights = [function.variables for function in functions.values()]
    tf.saved_model.save(archive, str(folder), functions)


def format_card(
    config: RunConfig,
    dataset: Dataset,
    metrics: Mapping[str, Any],
    calls: Sequence[str] = (),
) -> str:
    """Formats the card, with code that calls formats or the SavedModel."""
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"number": _format_number, "percent": _percent}
    template = environment.from_string(TEMPLATE.read_text("utf-8"))
    return template.render(
        config=config,
        dataset=dataset,
        num_ood=int(dataset.splits.all.is_ood.sum()),
        scores=select_scores(metrics),
        metrics=metrics,
        copies=describe_copies(metrics.get("copies", {})),
        channels=describe_pose_terms(metrics.get("channels", {})),
        version=__version__,
        calls=calls,
    )


def _format_number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "–"


def _percent(share: object) -> str:
    known = format_share(share) if isinstance(share, int | float) else "–"
    return known.replace("%", " %")


def format_hub_card(run: LoadedRun, calls: Sequence[str]) -> str:
    """Formats the card below the header for hubs, which names no license."""
    data, subsets = run.config.data, select_scores(run.metrics)
    use = "trained on as a control" if data.train_all else "held out"
    results = [
        {
            "task": {"type": "other", "name": "decoding of factors"},
            "dataset": {
                "type": f"tfcomp/{data.dataset}",
                "name": f"{data.dataset}, {data.region} {use}",
                "split": subset,
            },
            "metrics": [
                {"type": name, "value": value}
                for name, value in scores.items()
                if value is not None
            ],
        }
        for subset, scores in subsets.items()
    ]
    header = {
        "library_name": "tfcomp",
        "tags": ["tfcomp", "compositional-generalization", "decoder"],
        "datasets": [f"tfcomp/{data.dataset}"],
        "metrics": sorted({n for s in subsets.values() for n in s}),
        "model-index": [{"name": run.name, "results": results}],
    }
    card = format_card(run.config, run.dataset, run.metrics, calls)
    # JSON is YAML, too.
    return f"---\n{json.dumps(header, indent=2)}\n---\n\n{card}"
