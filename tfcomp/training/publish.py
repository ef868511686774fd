"""Packs a finished run as a published model, reads it back and scores it."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfcomp.config.errors import RunError
from tfcomp.config.run_flags import format_flags
from tfcomp.metrics.reference_scores import score_certified
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models import loading
from tfcomp.models.acting import clear_candidates
from tfcomp.models.loading import LoadedRun, format_weights, load_run
from tfcomp.storage import published_folder, run_folder
from tfcomp.storage.files import replace_folder
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE, select_scores
from tfcomp.training.export import format_hub_card

# Entries of `metrics.json` that a published model keeps.
KEPT = ("coverage", "points", "channels", "copies")
# Of scores that another machine computes from the same weights.
TOLERANCE = {"rel_tol": 1e-3, "abs_tol": 1e-7}
CALL = """\
import tfcomp

# Of a copy of this folder alone: tfcomp.load_published("", source=FOLDER)
run = tfcomp.load_published("{name}")
image = run.draw(factors)
stages = {{stage: run.activations(stage, factors) for stage in run.stages}}"""


def publish_run(path: Path, name: str, folder: Path) -> Path:
    """Packs a run in a folder of published models; returns the model's."""
    published_folder.check_name(name)
    loading.check_publishable(run_folder.check_run(path))
    run = load_run(path)
    clear_candidates(run.model)
    own_name = loading.make_run_name(name)
    config = dataclasses.replace(run.config, run_name=own_name)
    run = dataclasses.replace(run, config=config)
    contents = _pack_contents(run, name)
    with replace_folder(folder, name) as partial:
        for file, content in contents.items():
            (partial / file).write_bytes(content)
    return folder / name


def _pack_contents(run: LoadedRun, name: str) -> dict[str, bytes]:
    """Returns all files of a published model, with `SHA256SUMS`."""
    weights = format_weights(run.model.get_weights())
    contents = {
        FLAGS_FILE: _format_flags(run).encode(),
        METRICS_FILE: _format_metrics(run).encode(),
        published_folder.WEIGHTS_FILE: weights,
    }
    # Read back as users read them, the files must give the same scores.
    stored = loading.make_published(contents, name)
    metrics = score_stored(stored)
    check_scores(run.metrics, metrics)
    stored = dataclasses.replace(stored, metrics=stored.metrics | metrics)
    contents[METRICS_FILE] = _format_metrics(stored).encode()
    card = format_hub_card(stored, [CALL.format(name=name)])
    contents[published_folder.CARD_FILE] = card.encode()
    for file in published_folder.FILES:
        if len(contents[file]) > published_folder.LIMITS[file]:
            raise RunError(f"{file} is too large to be published")
    sums = published_folder.format_sums(contents).encode()
    return contents | {published_folder.SUMS_FILE: sums}


def score_stored(run: LoadedRun) -> dict[str, Any]:
    """Computes the scores of a model and its R^2, as in `metrics.json`."""
    run.dataset.prepare()
    result = RunAnalysis.of_run(run).evaluation
    return {**result.scores, "r2": score_certified(run.dataset, result, None)}


def check_scores(
    recorded: Mapping[str, Any], computed: Mapping[str, Any]
) -> None:
    """Raises a RunError for the first score that differs from the record."""
    for subset, scores in select_scores(recorded).items():
        for name, value in scores.items():
            other = computed.get(subset, {}).get(name)
            is_known = value is not None and other is not None
            if value != other and not (
                is_known and math.isclose(value, other, **TOLERANCE)
            ):
                raise RunError(
                    f"the model of this run has {subset}/{name}={other}, its "
                    f"{METRICS_FILE} has {value}"
                )


def _format_flags(run: LoadedRun) -> str:
    header = [ln for ln in run.description.splitlines() if ln.startswith("# ")]
    data = dataclasses.replace(run.config.data, data_dir="", examples_dir="")
    parts: Any = {"log_dir": "tensorboard_logs", "export_dir": "saved_models"}
    config = dataclasses.replace(run.config, data=data, **parts)
    return "\n".join([*header, format_flags(config)])


def _format_metrics(run: LoadedRun) -> str:
    metrics, epochs = run.metrics, run.config.training.epochs
    kept = {name: metrics[name] for name in KEPT if name in metrics}
    # Older runs have not recorded the number of weights.
    kept["train"] = {"epochs": epochs, "weights": run.model.count_params()}
    if "r2" in metrics:
        r2 = metrics["r2"]
        kept["r2"] = {key: r2[key] for key in ("id", "ood") if key in r2}
    content = {**select_scores(metrics), **kept}
    return json.dumps(content, indent=2, allow_nan=False) + "\n"
