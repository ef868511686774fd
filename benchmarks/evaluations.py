"""What the evaluations of a run cost: `python -m benchmarks.evaluations donut`.

Prints the processor seconds of an epoch of training, of scores, and of scores
with stages, each after a first call that traces functions, and the share of all
evaluations of a run in its training, as its flagfile sets them.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset

DEFAULTS = ("smoke", "donut")
LOGS = {"loss": 1.0, "seconds": 1.0}  # of an epoch that was not trained


def main() -> None:
    """Measures and prints."""
    for name in sys.argv[1:] or DEFAULTS:
        with tempfile.TemporaryDirectory() as folder:
            flags = [f"--flagfile={name}.flags", f"--log_dir={folder}"]
            measure_run(name, parse_config(flags))


def measure_run(name: str, config: RunConfig) -> None:
    """Measures the parts of a run, and prints its line.

    Args:
        name: The name of the run.
        config: The run.
    """
    with start_tensorflow():
        from tfcomp.training.fit import fit_epochs
        from tfcomp.training.monitor import Monitor
        from tfcomp.training.prepared_models import (
            make_strategy,
            prepare_models,
        )

    dataset = make_dataset(config)
    dataset.prepare()
    one_epoch = replace(config, training=replace(config.training, epochs=1))
    training = replace(config.training, epochs=3)
    three_epochs = replace(config, training=training)
    with prepare_models(config, dataset, make_strategy()) as models:
        monitor = Monitor(config, models, dataset)

        def train() -> None:
            fit_epochs(models.trained, dataset, one_epoch)

        def train_longer() -> None:
            fit_epochs(models.trained, dataset, three_epochs)

        def score() -> None:
            monitor.on_epoch_end(config.eval_every - 1, dict(LOGS))

        def score_stages() -> None:
            monitor.on_epoch_end(config.layerwise_every - 1, dict(LOGS))

        # A call of `fit` takes a while before its first step.
        start = measure_seconds(train)
        epoch = (measure_seconds(train_longer) - start) / 2
        scores = measure_seconds(score)
        stages = measure_seconds(score_stages)

    epochs = config.training.epochs
    num_stages = 0
    if config.layerwise_every:
        num_stages = epochs // config.layerwise_every
    num_scores = epochs // config.eval_every - num_stages
    evaluations = num_scores * scores + num_stages * stages
    share = evaluations / (epochs * epoch)
    print(
        f"{name}: epoch {epoch:.2f} s, scores {scores:.2f} s, with stages "
        f"{stages:.2f} s; evaluations {share:.0%} of training"
    )


def measure_seconds(work: Callable[[], None]) -> float:
    """Returns the processor seconds of the second of two calls."""
    work()
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
