"""One search, as a process of its own.

    python -m tfcomp.studies.thresholds.one_search FLAGS

makes all trainings that the search asks for. They share TensorFlow's start,
and those that are recorded are not repeated.
"""

import time
from collections.abc import Callable

from tfcomp.config.command import exit_on_user_error
from tfcomp.config.plugins import import_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import parse_flags
from tfcomp.studies.thresholds.cases import (
    Case,
    Evaluations,
    MissingError,
    Scores,
    find_in,
    list_cases,
)
from tfcomp.studies.thresholds.threshold_settings import (
    SearchSettings,
    define_search_flags,
)

TrainFn = Callable[[RunConfig], Scores]


def main(argv: list[str]) -> int:
    """Runs all searches that the flags describe, one after another."""
    values = parse_flags(argv[1:], define_search_flags())
    base = make_config(values)
    import_plugins(base.plugins)
    evaluations = Evaluations.of(base)
    with start_tensorflow():
        from tfcomp.studies.thresholds.threshold_trial import train_and_score

    for case in list_cases(base, SearchSettings.from_flags(values)):
        search_case(case, evaluations, train_and_score)
    return 0


def search_case(case: Case, evaluations: Evaluations, train: TrainFn) -> None:
    """Makes every training that one search needs and that is not recorded."""

    def read_or_train(config: RunConfig) -> Scores:
        try:
            return evaluations.get_scores(config)
        except MissingError:
            start = time.monotonic()
            scores = train(config)
            seconds = time.monotonic() - start
            evaluations.write_scores(config, scores, seconds)
            print(f"{_describe(config, scores)}  {seconds:.1f} s", flush=True)
            return scores

    for criterion in case.settings.targets:
        find_in(case, criterion, read_or_train)


def _describe(config: RunConfig, scores: Scores) -> str:
    count = config.data.num_train + config.data.num_bumps
    named = {key: scores[key] for key in ("position_accuracy", "relative_mse")}
    cells = [
        f"{key} {'-' if score is None else format(score, '.3g')}"
        for key, score in named.items()
    ]
    return f"{count:>6} bumps  {'  '.join(cells)}"


if __name__ == "__main__":
    exit_on_user_error(main)
