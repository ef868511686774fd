"""One search, in a worker: its trainings share TensorFlow's start."""

import time

from tfcomp.config.plugins import import_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig, make_config
from tfcomp.config.run_flags import parse_flags
from tfcomp.studies.thresholds.cases import Scores, list_cases
from tfcomp.studies.thresholds.search_settings import (
    SearchSettings,
    define_search_flags,
)


def main(argv: list[str]) -> None:
    """Runs all searches that the flags describe, and records their rows."""
    values = parse_flags(argv[1:], define_search_flags())
    base = make_config(values)
    import_plugins(base.plugins)
    with start_tensorflow():
        from tfcomp.studies.thresholds.threshold_trial import train_and_score

    def train(config: RunConfig) -> Scores:
        start = time.monotonic()
        scores = train_and_score(config)
        count = config.data.num_train + config.data.num_bumps
        seconds = time.monotonic() - start
        print(f"{count:>6} bumps  {scores}  {seconds:.1f} s", flush=True)
        return scores

    for case in list_cases(base, SearchSettings.from_flags(values)):
        case.write_rows(case.search(train))
