"""HParams of a sweep, as TensorBoard's own backend sees them."""

from pathlib import Path
from types import SimpleNamespace

import tensorflow as tf
from tensorboard.backend.event_processing import (
    data_provider,
    plugin_event_multiplexer,
)
from tensorboard.context import RequestContext
from tensorboard.plugins.hparams import api as hparams
from tensorboard.plugins.hparams import (
    api_pb2,
    get_experiment,
    list_session_groups,
)
from tensorboard.plugins.hparams.backend_context import Context

from tfcomp.config.run_flags import parse_config
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.sweep_run import write_experiment


def test_domains_and_scores(tmp_path: Path) -> None:
    """Every trial, which has written its own HParams, is a session."""
    trials = []
    for depth in (2, 3):
        flags = f"--run_name=t{depth}", f"--depth={depth}"
        places = f"--log_dir={tmp_path / 'trials'}"
        config = parse_config(["--flagfile=smoke.flags", *flags, places])
        writer = tf.summary.create_file_writer(config.run_dir)
        with writer.as_default(step=4):
            hparams.hparams(config.identity(), trial_id=config.run_name)
            tf.summary.scalar("ood/mse", depth / 8)
        writer.close()
        varied = {"depth": depth, "encoding": "bump", "resume": depth < 3}
        trials.append(Trial(varied, config))
    write_experiment(tmp_path, trials, ["id/mse", "ood/mse"])
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(tmp_path))
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, "logs")
    backend = Context(SimpleNamespace(data_provider=provider))
    where = RequestContext(), backend, ""
    request = api_pb2.GetExperimentRequest(include_metrics=True)
    experiment = get_experiment.Handler(*where, request).run()
    infos = {info.name: info for info in experiment.hparam_infos}
    assert list(infos) == ["depth", "encoding", "resume", "seed"]
    depths = infos["depth"].domain_discrete.values
    assert [value.number_value for value in depths] == [2, 3]
    (code,) = infos["encoding"].domain_discrete.values
    assert code.string_value == "bump"
    # Booleans are numbers in Python, and must not be here.
    assert infos["resume"].type == api_pb2.DATA_TYPE_BOOL
    tags = [metric.name.tag for metric in experiment.metric_infos]
    assert tags == ["id/mse", "ood/mse"]
    metric = api_pb2.MetricName(tag="ood/mse")
    groups = api_pb2.ListSessionGroupsRequest(
        slice_size=10,
        allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_RUNNING],
        col_params=[
            api_pb2.ColParams(hparam="depth"),
            api_pb2.ColParams(metric=metric),
        ],
    )
    found = {
        group.hparams["depth"].number_value: group.metric_values[0].value
        for group in list_session_groups.Handler(*where, groups)
        .run()
        .session_groups
    }
    assert found == {2: 0.25, 3: 0.375}
