"""A model and its data, measured and shown: runs, and any other model.

table = tfcomp.FactorTable(images, classes, names=["shape", "x", "y"])
result = tfcomp.evaluate(model, table, region="shape:2,x:4-7")
print(result.scores["ood"])
result.write_report("report")
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tfcomp.config.data_config import DataConfig
from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.coverage import measure_coverage
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.tables import make_table_dataset
from tfcomp.evaluation import loading
from tfcomp.evaluation.any_model import wrap_model
from tfcomp.evaluation.measures import measure_study
from tfcomp.evaluation.own_measures import try_measures
from tfcomp.evaluation.study import Study
from tfcomp.report.report_build import build_report
from tfcomp.storage.output_folders import check_folder


class Evaluated:
    """A model on data with held-out combinations; computed when asked for.

    Attributes:
        run: What a report is made of.
        study: Everything that the report looks at, by name.
    """

    def __init__(self, run: loading.LoadedRun) -> None:
        self.run = run
        self.study = Study(run)

    @property
    def scores(self) -> dict[str, dict[str, float | None]]:
        """ID and OOD scores, as in `metrics.json`."""
        return self.study.evaluation.scores

    @cached_property
    def coverage(self) -> dict[str, float]:
        """The shares of combinations, values and pixels outside the region."""
        return measure_coverage(self.run.dataset)

    @cached_property
    def measures(self) -> dict[str, Any]:
        """All numbers of `measures.json`, but those of the start."""
        return measure_study(self.study)

    def write_report(self, folder: str | Path) -> Path:
        """Writes the report of this model alone; returns its page."""
        return write_report([self], folder)


def load_run(path: str | Path) -> Evaluated:
    """Loads a finished run from its folder.

    Raises:
        RunError: If it is none, or damaged, or asks for plugins that are not
            imported.
    """
    return Evaluated(loading.load_run(path))


def evaluate(
    model: Any,
    data: FactorTable | Dataset,
    region: str = "",
    *,
    name: str = "model",
    stages: Sequence[str] = (),
    inputs: str = "values",
    eval_points: int = 4096,
) -> Evaluated:
    """Scores a model that may come from anywhere.

    Args:
        model: A Keras model, the path of a SavedModel or Keras file, or any
            function from factors [n, F], float32, to images [n, H, W, C] (or
            [n, C, H, W], [n, H, W], flat), or to a dictionary with `image`
            and named stages.
        data: Images and factors.
        region: What was held out from the training of the model, as in
            `--region`; by default that of a `Dataset`, or nothing.
        name: Of the model, in reports.
        stages: The layers, or entries of the dictionary, whose geometry is
            measured; a model of tfcomp has its own.
        inputs: What the model takes: `values` of the factors, `classes`
            (from 0), or `unit` (every factor scaled to 0..1).
        eval_points: At most so many combinations are looked at, drawn at
            random, half of them held out; 0 scores all of them.

    Raises:
        ConfigError: For an impossible region.
        ValueError: If the model does not draw such images, or has no such
            stage.
    """
    config = RunConfig(
        run_name=name,
        eval_points=eval_points,
        data=DataConfig(dataset="table", region=region or "none"),
    )
    if isinstance(data, FactorTable):
        data = make_table_dataset(config, data)
    elif region not in ("", data.region.spec):
        raise ConfigError("region", "must be that of the dataset", region)
    try_measures(data)
    wrapped = wrap_model(model, data, stages, inputs)
    text = (
        f"Model: {model!r}\nInputs: {inputs}\nRegion: {data.region.spec}\n"
        f"Points: {len(data.splits.scored):,} of {len(data.splits.all):,}\n"
    )
    run = loading.LoadedRun(None, config, data, wrapped, {}, text)
    return Evaluated(run)


def write_report(
    models: Sequence[Evaluated | str | Path], folder: str | Path
) -> Path:
    """Writes one report that compares models, and finished runs.

    Args:
        models: Evaluated models, or folders of finished runs.
        folder: Where pictures, tables and `report.html` are written.

    Returns:
        The page.

    Raises:
        ConfigError: If the folder cannot be written, or names are not unique.
        RunError: If a run cannot be loaded.
    """
    folder = Path(folder)
    check_folder("output", str(folder))
    studies = [
        (m if isinstance(m, Evaluated) else load_run(m)).study for m in models
    ]
    names = [study.name for study in studies]
    if len(set(names)) < len(names):
        raise ConfigError("name", "must differ between the models", names)
    folder.mkdir(parents=True, exist_ok=True)
    return build_report(studies, folder)
