"""The sweep in TensorBoard's tab HParams.

    tensorboard --logdir <log_dir>/<sweep>

Every trial is a session (it writes its own settings); what is written here
tells which of its many settings vary, over which values, and which scores to
show.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from google.protobuf import struct_pb2
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from tensorboard.summary.writer.record_writer import RecordWriter

from tfcomp.storage.files import write_bytes
from tfcomp.sweeps.trials import Trial

# TensorBoard knows an event file by a part of its name.
EVENTS_FILE = "events.out.tfevents.0.hparams"


def write_experiment(
    folder: Path, trials: Sequence[Trial], tags: Collection[str]
) -> None:
    """Writes the domains of the varied flags and the list of scores.

    Args:
        folder: The folder of the sweep, the parent of all trials.
        trials: The trials.
        tags: Scalars of the trials, as `ood/mse`.
    """
    experiment = make_experiment(
        [{**trial.setting, "seed": trial.seed} for trial in trials], tags
    )
    data = HParamsPluginData(experiment=experiment)
    value = Summary.Value(
        tag=metadata.EXPERIMENT_TAG,
        tensor=metadata.NULL_TENSOR,
        metadata=metadata.create_summary_metadata(data),
    )
    write_bytes(folder / EVENTS_FILE, format_events(Summary(value=[value])))


def format_events(summary: Summary) -> bytes:
    """The content of an event file with one summary, at step 0."""
    buffer = BytesIO()
    writer = RecordWriter(buffer)
    for event in (
        Event(wall_time=0.0, file_version="brain.Event:2"),
        Event(wall_time=0.0, step=0, summary=summary),
    ):
        writer.write(event.SerializeToString())
    return buffer.getvalue()


def make_experiment(
    settings: Sequence[Mapping[str, Any]], tags: Collection[str]
) -> api_pb2.Experiment:
    """What varies, and what it is judged by.

    Args:
        settings: The varied flags of every trial, all with the same keys.
        tags: Scalars of the trials.
    """
    infos = []
    for name in settings[0]:
        values = list(dict.fromkeys(setting[name] for setting in settings))
        domain = struct_pb2.ListValue()
        domain.extend(values)
        kind = _get_type(values[0])
        infos.append(
            api_pb2.HParamInfo(name=name, type=kind, domain_discrete=domain)
        )
    metrics = [
        api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in tags
    ]
    return api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)


def _get_type(value: object) -> int:
    if isinstance(value, bool):
        return api_pb2.DATA_TYPE_BOOL
    if isinstance(value, int | float):
        return api_pb2.DATA_TYPE_FLOAT64
    return api_pb2.DATA_TYPE_STRING
