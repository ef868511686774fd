"""The sweep in TensorBoard's tab HParams.

    tensorboard --logdir <log_dir>/<sweep>

Every trial is a session (it writes its own settings); what is written here
tells which of its many settings vary, over which values, and which scores to
show.
"""

from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.summary_v2 import (
    Discrete,
    HParam,
    Metric,
    hparams_config_pb,
)
from tensorboard.summary.writer.record_writer import RecordWriter

from tfcomp.storage.files import write_bytes
from tfcomp.sweeps.trials import Trial

# TensorBoard knows an event file by a part of its name.
EVENTS_FILE = "events.out.tfevents.0.hparams"


def write_experiment(
    folder: Path, trials: Sequence[Trial], tags: Collection[str]
) -> None:
    """Writes the domains of varied flags, and tags of scores, as `ood/mse`.

    The folder is that of the sweep, the parent of all trials.
    """
    settings = [{**trial.setting, "seed": trial.seed} for trial in trials]
    hparams = [
        HParam(name, Discrete({setting[name] for setting in settings}))
        for name in settings[0]
    ]
    # Equal sweeps have equal files, so there is no time in it.
    summary = hparams_config_pb(hparams, map(Metric, tags), 0.0)
    content = BytesIO()
    writer = RecordWriter(content)
    for event in (
        Event(wall_time=0.0, file_version="brain.Event:2"),
        Event(wall_time=0.0, step=0, summary=summary),
    ):
        writer.write(event.SerializeToString())
    write_bytes(folder / EVENTS_FILE, content.getvalue())
