"""HParams of a sweep, as TensorBoard's own backend sees them."""

from pathlib import Path
from types import SimpleNamespace

from tensorboard.backend.event_processing import (
    data_provider,
    plugin_event_multiplexer,
)
from tensorboard.context import RequestContext
from tensorboard.plugins.hparams import api_pb2, get_experiment
from tensorboard.plugins.hparams.backend_context import Context

from tfcomp.config.run_flags import parse_config
from tfcomp.sweeps.grid import Trial
from tfcomp.sweeps.sweep_run import write_experiment


def test_domains_and_scores(tmp_path: Path) -> None:
    trials = []
    for depth in (2, 3):
        config = parse_config(["--flagfile=smoke.flags", f"--depth={depth}"])
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
