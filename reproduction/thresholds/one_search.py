"""One search, in a worker: its trainings share TensorFlow's start.

It makes hundreds of trainings in one process, without run folder, checkpoint,
picture or export. None depends on those before it.
"""

import functools
import gc
import math
from collections.abc import Callable

from reproduction.thresholds.cases import Case, Row, list_cases
from reproduction.thresholds.search_settings import (
    SearchSettings,
    define_search_flags,
    is_reached,
)
from tfcomp.config.plugins import import_plugins
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import parse_flags
from tfcomp.datasets import make_dataset

Scores = dict[str, float | None]


def main(argv: list[str]) -> None:
    """Runs all searches that the flags describe, and records their rows."""
    values = parse_flags(argv[1:], define_search_flags())
    base = make_config(values)
    import_plugins(base.plugins)
    with start_tensorflow():
        for case in list_cases(base, SearchSettings.from_flags(values)):
            case.write_rows(search(case, train_and_score))


def search(case: Case, train: Callable[[RunConfig], Scores]) -> list[Row]:
    """Searches for every criterion, and returns a row for each."""

    @functools.cache
    def score(count: int) -> Scores:
        scores = train(case.make_config(count))
        print(f"{count:>6} bumps  {scores}", flush=True)
        return scores

    rows, targets = [], case.settings.targets
    for criterion in targets:

        def reaches(count: int, name: str = criterion) -> bool:
            return is_reached(name, score(count)[name], targets[name])

        limits = *case.find_range(), case.settings.tolerance
        count, answers = find_threshold(reaches, *limits)
        row = {
            "kind": case.kind,
            "region": case.region,
            "criterion": criterion,
            "grid_size": case.grid_size,
            "seed": case.seed,
            "num_bumps": count,
            "num_examples": case.count_examples(count),
            "reached": answers[count],
            "score": score(count)[criterion],
            "target": targets[criterion],
            "num_trainings": len(answers),
        }
        rows.append(row)
    return rows


def find_threshold(
    reaches: Callable[[int], bool],
    first: int,
    maximum: int,
    minimum: int = 1,
    tolerance: float = 1.2,
) -> tuple[int, dict[int, bool]]:
    """Brackets the threshold by doubling or halving, then bisects its log.

    Returns the smallest count tried that reaches, else the maximum; and all
    answers by count, in their order. For any answers, a count below the
    returned one by at most the tolerance (or by 1) does not reach, unless it is
    the minimum, 0 or 1. No count is tested twice: each is a long training.
    """
    answers: dict[int, bool] = {}

    def ask(count: int) -> bool:
        if count not in answers:
            answers[count] = bool(reaches(count))
        return answers[count]

    if minimum == 0 and ask(0):
        return 0, answers
    low = high = first
    if ask(first):
        low = first // 2
        while low and ask(low):  # 0 fails, or makes no sense
            low, high = low // 2, low
    while not ask(high):
        if high >= maximum:
            return maximum, answers
        low, high = high, min(2 * high, maximum)
    while high - low > 1 and high > tolerance * low:
        middle = round(math.sqrt(max(low, 1) * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if ask(middle) else (middle, high)
    return high, answers


def train_and_score(config: RunConfig) -> Scores:
    """Trains the decoder of a run; scores held-out points, or all."""
    import keras
    import tensorflow as tf

    from tfcomp.metrics.point_scores import evaluate_images
    from tfcomp.training.fit import fit_without_pause
    from tfcomp.training.prepared_models import (
        make_model,
        make_strategy,
        make_training_model,
    )

    dataset = make_dataset(config)
    strategy = make_strategy(config.training.num_replicas)
    model = make_training_model(config, dataset, strategy)
    fit_without_pause(model, dataset, config)
    # Scored in float32, whatever the precision of the training.
    observed = make_model(config, dataset, "float32")
    observed.set_weights(model.get_weights())
    predict = tf.function(lambda factors: {"image": observed(factors)})
    subsets = evaluate_images(dataset, predict).scores
    scores = subsets["ood" if dataset.splits.is_ood.any() else "id"]
    # Else every model would stay in memory until the last one.
    keras.backend.clear_session()
    gc.collect()
    return scores
