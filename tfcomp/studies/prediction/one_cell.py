"""The networks of one setting, as a process of its own.

    python -m tfcomp.studies.prediction.one_cell FLAGS

They share what TensorFlow has traced; those that are recorded are not
repeated.
"""

import time
from pathlib import Path

from tfcomp.config import run_flags
from tfcomp.config.command import exit_on_user_error
from tfcomp.config.plugins import import_plugins
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import make_config
from tfcomp.studies.prediction.design import Cell, PredictSettings, open_records


def main(argv: list[str]) -> int:
    """Trains and measures every network that is not recorded."""
    known = run_flags.define_run_flags()
    run_flags.define_settings(PredictSettings.list_settings(), known)
    values = run_flags.parse_flags(argv[1:], known)
    config = make_config(values)
    settings = PredictSettings.from_flags(values)
    import_plugins(config.plugins)
    with start_tensorflow():
        import keras

        from tfcomp.studies.prediction.network_training import train_network

    keras.backend.clear_session()
    records = open_records(Path(config.run_dir), settings.target)
    for run in Cell({}, config, settings.all_seeds).make_configs():
        if records.read(run) is None:
            start = time.monotonic()
            records.write(run, train_network(run, settings.target))
            seconds = time.monotonic() - start
            print(f"seed {run.training.seed}  {seconds:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    exit_on_user_error(main)
