"""What the evaluations of a run cost: `python -m benchmarks.evaluations donut`.

Prints the processor seconds of an epoch of training, of scores, and of scores
with stages, each after a first call that traces functions, and the share of all
evaluations of a run in its training, as its flagfile sets them. The geometry of
all stages is a number of forward passes, of which the least possible is one
more than there are ordered factors.
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
    grid = dataset.splits.grid
    with prepare_models(config, dataset, make_strategy()) as models:
        monitor = Monitor(config, models, dataset)

        def train(epochs: int) -> None:
            training = replace(config.training, epochs=epochs)
            longer = replace(config, training=training)
            fit_epochs(models.trained, dataset, longer)

        def evaluate(every: int) -> None:
            monitor.on_epoch_end(every - 1, dict(LOGS))

        # A call of `fit` takes a while before its first step.
        start = measure_seconds(train, 1)
        epoch = (measure_seconds(train, 3) - start) / 2
        scores = measure_seconds(evaluate, config.eval_every)
        stages = measure_seconds(evaluate, config.layerwise_every)
        images = measure_seconds(models.traced.predict, grid)
        geometry = measure_seconds(models.traced.measure_exactly, grid)

    epochs = config.training.epochs
    num_stages = 0
    if config.layerwise_every:
        num_stages = epochs // config.layerwise_every
    num_scores = epochs // config.eval_every - num_stages
    evaluations = num_scores * scores + num_stages * stages
    share = evaluations / (epochs * epoch)
    print(
        f"{name}: epoch {epoch:.2f} s, scores {scores:.2f} s, with stages "
        f"{stages:.2f} s; evaluations {share:.0%} of training; geometry "
        f"{geometry / images:.2f} forward passes"
    )


def measure_seconds(work: Callable[..., object], argument: object) -> float:
    """Returns the processor seconds of the second of two calls.

    Args:
        work: The function.
        argument: What it is called with.
    """
    work(argument)
    start = time.process_time()
    work(argument)
    return time.process_time() - start


if __name__ == "__main__":
    main()
