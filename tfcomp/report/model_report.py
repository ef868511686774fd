"""Results of a model on data with held-out combinations, computed on use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from markupsafe import Markup

from tfcomp.config.errors import ConfigError, name_arguments
from tfcomp.datasets import solvable, views
from tfcomp.figures import pictures
from tfcomp.figures.exhibits import Plot, figure_to_png
from tfcomp.figures.layout import Width, fit_width
from tfcomp.metrics import run_metrics
from tfcomp.metrics.jacobians import choose_jacobian, compute_stage_metrics
from tfcomp.metrics.run_analysis import RunAnalysis
from tfcomp.models import loading
from tfcomp.models.stages import evaluate_in_batches, make_stage_model
from tfcomp.report.explorer import Explorer
from tfcomp.report.page import TEMPLATES, keep_filled, render_template
from tfcomp.report.report_build import build_report
from tfcomp.report.run_exhibits import find_analysis, tabulate_points
from tfcomp.report.stage_section import make_charts
from tfcomp.report.verbalize import describe_model

Scores = dict[str, dict[str, float | None]]
NUMBERS: dict[str, Any] = {"float_format": "{:.4g}".format}


class ModelReport:
    """A model on data with held-out combinations; results are computed on use.

    `load_run`, `train_run` and `evaluate` return it; `analysis` has all results
    that a report shows. Methods take factors as values [n, F] or by name
    (`x=3, shape="heart"`, lists of values, a table with such columns); without
    factors they use all combinations that are scored. `score_sds` has standard
    deviations of the scores over `samples` evaluations.

    Attributes:
        name: The name of the run, or of the model.
        path: The folder of the run; None for a model from elsewhere.
        model: The model, from factors [n, F] to images [n, H, W, C].
        dataset: Factors, held-out combinations, and true images.
    """

    def __init__(
        self,
        run: loading.LoadedRun,
        outputs: np.ndarray | None = None,
        sampled: tuple[Scores, Scores] = ({}, {}),
    ) -> None:
        """Takes a run and, if known, outputs and scores of several samples."""
        self.run = run
        self.name, self.path, self.model = run.name, run.path, run.model
        self.dataset = run.dataset
        self.analysis = RunAnalysis.of_run(run, outputs)
        self._means, self.score_sds = sampled

    def __repr__(self) -> str:
        frames = [self._tabulate(), *self.tables.values()][:2]
        shown = [frame.to_string(**NUMBERS, na_rep="-") for frame in frames]
        return "\n".join([describe_model(self.run), "\n\n".join(shown)])

    def _repr_html_(self) -> str:
        return render_template(
            TEMPLATES / "model_report.html",
            text=describe_model(self.run),
            table=Markup(self._tabulate().to_html(**NUMBERS, na_rep="–")),
            picture=figure_to_png(self.plot_samples()),
        )

    def _tabulate(self) -> pd.DataFrame:
        deviations = pd.DataFrame(self.score_sds).add_suffix(" sd")
        return pd.DataFrame(self.scores).join(deviations)

    @property
    def stages(self) -> list[str]:
        """Names of the stages in the order of the data flow."""
        return self.analysis.stages

    @property
    def scores(self) -> Scores:
        """ID and OOD scores, as in `metrics.json`, that any subset has.

        With `samples`, means over as many evaluations.
        """
        scores = self._means or self.analysis.evaluation.scores
        return dict(zip(scores, keep_filled([*scores.values()]), strict=True))

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """More results by name.

        Embeddings and encoders have `layers`, `parts` and `pairs`, encoders
        also `codes`; with a reader there are `readings`.
        """
        return {n: pd.DataFrame(rows) for n, rows in self.run.tables.items()}

    @cached_property
    def coverage(self) -> dict[str, float]:
        """The shares of combinations, values and pixels outside the region."""
        return solvable.measure_coverage(self.run.dataset)

    @cached_property
    def measures(self) -> dict[str, Any]:
        """The measures in `metrics.json`, without the start of training."""
        return run_metrics.compute_metrics(self.analysis)

    @name_arguments
    def refine(self, between: int) -> ModelReport:
        """Returns the model at `between` even values of each ordered factor.

        Its scores, `to_frame` and `plot_error` are on this finer grid.

        Raises:
            ConfigError: If codes or images have no values between the grid's.
        """
        return ModelReport(self.analysis.refine(between).run)

    @name_arguments
    def draw(self, factors: Any = None, **by_name: Any) -> np.ndarray:
        """Returns images that the model draws, float32 [n, H, W, C].

        Raises:
            ConfigError: If a factor or level is missing or unknown.
        """
        points = self._read_points(factors, by_name)
        return evaluate_in_batches(lambda f: {"": self.model(f)}, points)[""]

    @name_arguments
    def activations(
        self, stage: str, factors: Any = None, **by_name: Any
    ) -> np.ndarray:
        """Returns activations of a stage, [n, ...].

        Raises:
            ConfigError: As `draw`, or if there is no such stage.
        """
        part = make_stage_model(self.model, [self._check_stage(stage)])
        points = self._read_points(factors, by_name)
        return evaluate_in_batches(lambda f: dict(part(f)), points)[stage]

    @name_arguments
    def geometry(
        self, stage: str, factors: Any = None, **by_name: Any
    ) -> np.ndarray:
        """Returns metric tensors of a stage, [n, F, F] (paper section 3.4).

        They are in squared activations per unit of the ordered factors.

        Raises:
            ConfigError: As `activations`.
        """
        part = make_stage_model(self.model, [self._check_stage(stage)])
        if factors is None and not by_name:
            return self.analysis.metrics[stage]
        jacobian = choose_jacobian(self.model, self.dataset)
        return evaluate_in_batches(
            lambda f: compute_stage_metrics(part, f, jacobian),
            self._read_points(factors, by_name),
        )[stage]

    def to_frame(self) -> pd.DataFrame:
        """Returns a table with a row for each combination that is scored.

        Its factors (names of levels for categories), whether it is held out
        (`is_ood`), `mse`, and `relative_mse`: over the error of the reference
        (`dataset.reference`) there. Images of 11 x 11 pixels or more also have
        `ssim_error`, 1 less the structural similarity. With a reader, whether
        it finds each factor (`reads_<factor>`).
        """
        return tabulate_points(self.analysis)

    def plot_samples(self, subset: str = "", *, width: Width = "") -> Plot:
        """Plots true images above outputs of `ood`, or of `id` without any.

        The width is `column` (3.25 inches) or `page` (6.75) for print, or a
        number of inches; text is then 7 points, or as in your rcParams. `data`
        of the figure is a table of what it shows.

        Raises:
            ConfigError: If there is no such subset.
        """
        words = {"id": "in distribution"}
        if self.analysis.splits.is_ood.any():
            words["ood"] = "held out"
        subset = subset or list(words)[-1]
        if subset not in words:
            rule = f"must be among {', '.join(words)}"
            raise ConfigError("subset", rule, subset)
        title = f"{self.analysis.name}: {words[subset]}"
        shown = self.dataset, self.analysis.evaluation
        with fit_width(width):
            return pictures.picture_samples(*shown, subset, title)

    def plot_error(self, *, width: Width = "") -> Plot:
        """Plots the error as a map, or as a curve over one ordered factor.

        For the width and `data` of the figure see `plot_samples`.
        """
        analysis, picture = self.analysis, pictures.picture_error_curve
        if analysis.has_map:
            analysis, picture = analysis.for_maps, pictures.picture_landscape
        elif not analysis.curves:
            self._refuse_order("and all combinations to be plotted")
        with fit_width(width):
            return picture(analysis.dataset, analysis.evaluation)

    def plot_layers(self, *, width: Width = "") -> Plot:
        """Plots factorization stage by stage.

        For the width and `data` of the figure see `plot_samples`.
        """
        if not self.dataset.space.ordered:
            self._refuse_order("to have a geometry")
        with fit_width(width):
            charts = make_charts([self.analysis], "layers")
        return next(c.figure for c in charts if isinstance(c.figure, Plot))

    def explore(self, *others: ModelReport | str | Path) -> Explorer:
        """Returns the explorer: outputs at the combination under the pointer.

        A notebook shows it; `.write("explorer.html")` makes it a file. The
        others are models, or folders of runs (RunError if one is none).
        """
        return Explorer([*map(find_analysis, (self, *others))])

    def write_report(
        self, folder: str | Path, sections: Sequence[str] = ()
    ) -> Path:
        """Writes the report of this model alone; returns its page."""
        return build_report([self.analysis], Path(folder), sections)[0]

    def _read_points(self, factors: Any, by_name: dict[str, Any]) -> np.ndarray:
        if factors is None and not by_name:
            return self.dataset.splits.grid
        return views.read_points(self.dataset.space, factors, by_name)

    def _refuse_order(self, purpose: str) -> NoReturn:
        rule = f"must have an ordered factor {purpose}"
        raise ConfigError("data", rule, ", ".join(self.dataset.space.names))

    def _check_stage(self, stage: str) -> str:
        if stage not in self.stages:
            rule = f"must be among {', '.join(self.stages)}"
            raise ConfigError("stage", rule, stage)
        return stage
