"""One training of a search: train a decoder, score it, forget it.

A search makes hundreds in one process, without run folder, checkpoint, picture
or export. None depends on those before it.
"""

import gc

import keras
import tensorflow as tf

from tfcomp.analysis.jacobians import evaluate_in_batches
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.evaluation.point_scores import score_subsets
from tfcomp.training.fit import fit_without_pause
from tfcomp.training.prepared_models import make_model, make_training_model
from tfcomp.training.strategy import make_strategy


def train_and_score(config: RunConfig) -> dict[str, float | None]:
    """Trains the decoder of a run without a pause; scores what it draws.

    Scores are as in `tfcomp.analysis.scores`, over the held-out grid points, or
    over all if the region is `none`. A training that diverges has an accuracy
    of 0 and no errors. Raises ConfigError if this machine cannot follow the
    settings.
    """
    dataset = make_dataset(config)
    strategy = make_strategy(config.training.num_replicas)
    model = make_training_model(config, dataset, strategy)
    fit_without_pause(model, dataset, config)
    # Scored in float32, whatever the precision of the training.
    observed = make_model(config, dataset, "float32")
    observed.set_weights(model.get_weights())
    scores = _score(observed, dataset)
    # Else every model would stay in memory until the last one.
    keras.backend.clear_session()
    gc.collect()
    return scores


def _score(model: keras.Model, dataset: Dataset) -> dict[str, float | None]:
    splits = dataset.splits
    draw = tf.function(lambda factors: {"image": model(factors)})
    images = evaluate_in_batches(draw, splits.grid)["image"]
    truth = dataset.render_array(splits.grid)
    scored = splits.is_ood if splits.is_ood.any() else splits.is_id
    return score_subsets(dataset, images, truth, {"all": scored})["all"]
