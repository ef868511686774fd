"""One trial: trains and scores a run, or resumes it, if it is not finished."""

from pathlib import Path

from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import define_run_flags, make_flags, parse_flags
from tfcomp.models.config_checks import check_config


def run_trial(argv: list[str]) -> None:
    """Runs the trial of the flags; --measure measures it, even if finished.

    A worker calls it for one trial after another.
    """
    text = "Also add the measures of the claims to metrics.json."
    values = make_flags({"measure": (False, text)}, define_run_flags())
    settings = parse_flags(argv[1:], values)
    measure = settings.pop("measure")
    config = make_config(settings | {"resume": True})
    dataset = check_config(config)
    with start_tensorflow():
        import keras

        from tfcomp.training.experiment import train_and_evaluate

    # Layers are numbered through the life of a process, and their names are
    # saved: the names must not depend on earlier trials.
    keras.backend.clear_session()
    train_and_evaluate(config, dataset)
    if measure:
        from tfcomp.evaluation.run_metrics import measure_run
        from tfcomp.training.prepared_models import list_evaluators

        measure_run(Path(config.run_dir), list_evaluators())
