"""One search: makes all trainings that it asks for, in a worker.

They share TensorFlow's start, and those that are recorded are not repeated.
"""

import time
from collections.abc import Callable

from tfcomp.config.plugins import import_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import parse_flags
from tfcomp.studies.thresholds import cases
from tfcomp.studies.thresholds.threshold_settings import (
    CRITERIA,
    SearchSettings,
    define_search_flags,
)


def main(argv: list[str]) -> None:
    """Runs all searches that the flags describe, one after another."""
    values = parse_flags(argv[1:], define_search_flags())
    base = make_config(values)
    import_plugins(base.plugins)
    evaluations = cases.Evaluations.of(base)
    with start_tensorflow():
        from tfcomp.studies.thresholds.threshold_trial import train_and_score

    for case in cases.list_cases(base, SearchSettings.from_flags(values)):
        search_case(case, evaluations, train_and_score)


def search_case(
    case: cases.Case,
    evaluations: cases.Evaluations,
    train: Callable[[RunConfig], cases.Scores],
) -> None:
    """Makes every training that one search needs and that is not recorded."""

    def read_or_train(config: RunConfig) -> cases.Scores:
        try:
            return evaluations.get_scores(config)
        except cases.MissingError:
            start = time.monotonic()
            scores = train(config)
            seconds = time.monotonic() - start
            evaluations.write_scores(config, scores, seconds)
            count = config.data.num_train + config.data.num_bumps
            named = [(name, scores[name]) for name in CRITERIA]
            shown = [
                f"{n} {'-' if v is None else f'{v:.3g}'}" for n, v in named
            ]
            words = [f"{count:>6} bumps", *shown, f"{seconds:.1f} s"]
            print("  ".join(words), flush=True)
            return scores

    for criterion in case.settings.targets:
        cases.find_in(case, criterion, read_or_train)
