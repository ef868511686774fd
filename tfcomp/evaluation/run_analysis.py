"""A study: one run with everything that reports and measures look at."""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tfcomp.analysis import interpolation, similarity
from tfcomp.analysis.border import compute_border_distance
from tfcomp.analysis.features import compute_gram, mean_or_none
from tfcomp.analysis.geometry import compute_log_volume
from tfcomp.analysis.kernel_regression import KernelFit, fit_all_kernels
from tfcomp.analysis.kernels import summarize_alignment
from tfcomp.analysis.manifolds import compute_gap_statistics
from tfcomp.analysis.probes import NO_SCORES, Scores
from tfcomp.analysis.scores import compute_mse_per_image
from tfcomp.analysis.sharing import compute_sharing
from tfcomp.analysis.superposition import (
    SuperpositionScores,
    compare_superpositions,
)
from tfcomp.analysis.tuning import Tuning
from tfcomp.datasets.dataset import Dataset, brighten, choose_rows
from tfcomp.datasets.explored import choose_explored, choose_few
from tfcomp.datasets.grid_maps import Curve, list_curves
from tfcomp.evaluation import derivatives, stage_blocks
from tfcomp.evaluation.evaluator import (
    EmbeddingAnalysis,
    Evaluator,
    LayerAnalysis,
)
from tfcomp.evaluation.kept_property import kept_property, shared_property
from tfcomp.evaluation.loading import LoadedRun
from tfcomp.evaluation.point_scores import Evaluation, compute_error_ratio
from tfcomp.evaluation.reference_scores import (
    References,
    draw_superposed_inputs,
    score_references,
)
from tfcomp.storage.kept_results import KeptResults

TRUTH = "truth"  # the true images, as a stage
# At which the truth is tested for being a sum.
TRUTH_POINTS = 32
# Of a sample of a large space; the time grows with the square of the points.
FEW_POINTS = 1024


class RunAnalysis:
    """Results of a finished run, each computed when it is first asked for.

    An evaluator of the run's model is not to be used for other weights before
    the last result. A study like many others is worth tracing more functions.
    What takes long is taken from what is `kept` beside the run, if given.
    """

    def __init__(
        self,
        run: LoadedRun,
        evaluator: Evaluator | None = None,
        is_repeated: bool = False,
        kept: KeptResults | None = None,
        outputs: np.ndarray | None = None,
    ) -> None:
        if outputs is not None:  # images at the points of the grid
            vars(self)["_outputs"] = outputs
        self.run, self.name = run, run.name
        self.dataset, self.splits = run.dataset, run.dataset.splits
        is_complete = self.splits.is_complete
        self._shape = self.dataset.space.shape if is_complete else None
        self.kept = kept
        self.locks = defaultdict(threading.RLock)
        # Whether all that is shown of stages is wanted, in one pass over them.
        self.is_reported = False
        # The run as the explorer of a report shows it, where there is one.
        self.explored: RunAnalysis | None = None
        self._explored: dict[int, RunAnalysis] = {}  # by the limit of points
        # The same run at its own points, where this is a look at other ones.
        self._origin: RunAnalysis | None = None
        seed = run.config.training.seed
        self._is_repeated = is_repeated
        self._evaluator = evaluator or Evaluator(run.model, run.dataset, seed)
        self._evaluator.set_dataset(run.dataset, seed)
        # Numbers of units, in the order of the data flow.
        self.stage_sizes = self._evaluator.stage_sizes

    @property
    def stages(self) -> list[str]:
        """Names of the stages in the order of the data flow."""
        return list(self.stage_sizes)

    @property
    def has_map(self) -> bool:
        """Whether results can be drawn as maps over two ordered factors."""
        return bool(self.dataset.planes)

    @property
    def has_hole(self) -> bool:
        """Whether combinations of several factors are held out."""
        return len(self.dataset.space) > 1 and bool(self.splits.is_ood.any())

    @cached_property
    def for_maps(self) -> RunAnalysis:
        """The run at the points of its maps; itself on a complete grid."""
        return self._at_points(self.dataset.mapped, metrics={})

    @cached_property
    def for_pairs(self) -> RunAnalysis:
        """The run at few points, where each is compared with every other one;
        itself on a complete grid, and if it has no more."""
        return self._at_points(choose_few(self.dataset, FEW_POINTS))

    def for_explorer(self, limit: int) -> RunAnalysis:
        """The run at the points that an explorer shows; itself if at its
        own."""
        if limit not in self._explored:
            dataset = choose_explored(self.dataset, limit)
            self._explored[limit] = self._at_points(dataset, metrics={})
        return self._explored[limit]

    def _at_points(self, dataset: Dataset, **changes: Any) -> RunAnalysis:
        """The run at other points; of other ones than its own, what it has
        recorded (`metrics`) does not hold."""
        if dataset is self.dataset:
            return self
        run = dataclasses.replace(self.run, dataset=dataset, **changes)
        look = RunAnalysis(
            run, self._evaluator.at_points(dataset), kept=self.kept
        )
        look._origin = self
        return look

    @kept_property
    def shown_units(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Units of every stage [k], and their activations at all points."""
        is_known = "numbers" in vars(self) or self.kept is not None
        is_known |= self.is_reported
        if is_known and self.splits.is_complete:
            return {
                stage: (found.units, found.maps.reshape(len(found.units), -1))
                for stage, found in self.numbers.items()
            }
        return {
            stage: stage_blocks.show_units(blocks)
            for stage, _, blocks in self._evaluator.read_stages()
        }

    @property
    def is_plane(self) -> bool:
        """Whether the grid is that of two factors, both ordered."""
        is_pair = self.has_map and len(self.dataset.space) == 2
        return is_pair and self.splits.is_complete

    @shared_property
    def evaluation(self) -> Evaluation:
        """Outputs and scores over the grid."""
        if self._origin is None:
            return self._evaluator.evaluate(self._outputs)
        images = self._compute_rest(
            {"": self._origin.evaluation.images},
            lambda points: {"": self._evaluator.draw(points)},
        )
        return self._evaluator.evaluate(images[""])

    def _compute_rest(
        self,
        known: dict[str, np.ndarray],
        compute: Callable[[np.ndarray], dict[str, np.ndarray]],
    ) -> dict[str, np.ndarray]:
        """Values at all points, by name: those known at the points of
        `_origin`, and elsewhere what `compute` gives."""
        points, origin = self.splits.grid, self._origin.splits.grid
        places = {row.tobytes(): i for i, row in enumerate(origin)}
        rows = np.array([places.get(row.tobytes(), -1) for row in points])
        missing = rows < 0
        if missing.all():
            return compute(points)
        found = {name: values[rows] for name, values in known.items()}
        if missing.any():
            for name, values in compute(points[missing]).items():
                found[name][missing] = values
        return found

    @kept_property
    def _outputs(self) -> np.ndarray:
        return self._evaluator.draw(self.splits.grid)

    @cached_property
    def error(self) -> np.ndarray:
        """MSE over pixels at every grid point, [n]."""
        found = self.evaluation
        return compute_mse_per_image(found.images, found.truth)

    @cached_property
    def error_ratio(self) -> np.ndarray:
        """MSE at every grid point over that of a blank image there, [n]."""
        return compute_error_ratio(self.dataset, self.evaluation)

    @kept_property
    def references(self) -> References:
        """Relative errors of predictors that need no network."""
        return score_references(self.dataset, self.evaluation.truth)

    @cached_property
    def border_distance(self) -> np.ndarray:
        """Grid steps from every grid point to the nearest ID one, [n]."""
        space, known = self.dataset.space, self.dataset.known
        if known is None:
            return np.full(len(self.splits.grid), np.inf)
        # What does not exist is not known either.
        distance = compute_border_distance(~known.ravel(), space)
        rows = space.to_index(self.splits.grid).T
        return distance.reshape(space.shape)[tuple(rows)]

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """Metric tensors of every stage at every grid point, [n, F, F]."""
        return self._geometry[0]

    @property
    def nondifferentiable(self) -> Sequence[str]:
        """Stages whose metric tensors are those of differences."""
        return self._geometry[1]

    @kept_property
    def _geometry(self) -> tuple[dict[str, np.ndarray], list[str]]:
        measure = self._evaluator.measure_geometry
        if self._origin is not None and not self._origin.nondifferentiable:
            found = self._compute_rest(self._origin.metrics, measure)
            if not self._evaluator.nondifferentiable:
                return found, []
        return measure(), [*self._evaluator.nondifferentiable]

    @cached_property
    def log_volume(self) -> dict[str, np.ndarray]:
        """Log-volume of every stage at every grid point, [n]."""
        return {s: compute_log_volume(g) for s, g in self.metrics.items()}

    @kept_property
    def interactions(self) -> derivatives.Interactions:
        """How factors interact in every stage; nothing without derivatives."""
        self._evaluator.nondifferentiable = self.nondifferentiable
        return self._evaluator.measure_interactions(
            derivatives.MEASURED_POINTS, self._is_repeated
        )

    @property
    def compared_points(self) -> np.ndarray:
        """Points at which stages are compared with each other, [n, F]."""
        grid = self.splits.grid
        return derivatives.choose_points(grid, similarity.MAX_POINTS)

    @kept_property
    def shapes(self) -> dict[str, similarity.Shape]:
        """Every stage at `compared_points`, to be compared."""
        points = self.compared_points
        nothing = np.zeros(len(points), bool)
        return {
            stage: similarity.make_shape(compute_gram(blocks, nothing))
            for stage, _, blocks in self._evaluator.read_points(points)
        }

    @kept_property
    def similarities(self) -> list[dict[str, Any]]:
        """How alike any two stages are, the first one of a pair upstream."""
        summarize, shapes = similarity.summarize_similarity, self.shapes
        return [
            {"stage": a, "other": b, **summarize(shapes[a], shapes[b])}
            for a, b in itertools.combinations(self.stages, 2)
        ]

    @cached_property
    def layers(self) -> LayerAnalysis:
        """Geometry and probes of every stage."""
        probes = {stage: self._find_recorded(stage) for stage in self.stages}
        if None in probes.values():
            probes = {stage: n.probe for stage, n in self.numbers.items()}
        return self._evaluator.analyze_layers(self.metrics, probes)

    @cached_property
    def embeddings(self) -> dict[str, EmbeddingAnalysis]:
        """Low-rank embeddings by factor, if the model has any."""
        return self._evaluator.analyze_embeddings()

    @property
    def tuning(self) -> dict[str, Tuning]:
        """Tuning of the units of every stage; nothing without all the grid."""
        if not self.splits.is_complete:
            return {}
        if "numbers" in vars(self) or self.is_reported:
            return {stage: n.tuning for stage, n in self.numbers.items()}
        return {stage: tuning for stage, (tuning, _) in self._units.items()}

    @property
    def grid_probes(self) -> dict[str, float | None]:
        """R^2 over the whole grid of a linear probe of every stage."""
        return {stage: score for stage, (_, score) in self._units.items()}

    @cached_property
    def _units(self) -> dict[str, tuple[Tuning, float | None]]:
        """What measures need of the units of a stage, in one pass."""
        points = self._shape, len(self.splits.grid)
        return {
            stage: stage_blocks.measure_stage(
                blocks, num_units, *points, self._evaluator.probe_grid
            )
            for stage, num_units, blocks in self._evaluator.read_stages()
        }

    @kept_property
    def numbers(self) -> dict[str, stage_blocks.StageNumbers]:
        """What the report shows of every stage."""
        points = self._shape, self.splits.is_ood
        return {
            stage: stage_blocks.reduce_stage(
                blocks, num_units, *points, self._find_probe(stage)
            )
            for stage, num_units, blocks in self._evaluator.read_stages()
        }

    def _find_probe(self, stage: str) -> Callable[[np.ndarray], Scores]:
        recorded = self._find_recorded(stage)
        return (lambda _: recorded) if recorded else self._evaluator.probe

    def _find_recorded(self, stage: str) -> Scores | None:
        """The scores of a probe that the run has: of thousands of units, to fit
        one again takes longer than all that is drawn."""
        row = (self.run.metrics.get("layers") or {}).get(stage) or {}
        is_known = NO_SCORES.keys() <= row.keys()
        return {name: row[name] for name in NO_SCORES} if is_known else None

    @property
    def superposition(self) -> SuperpositionScores:
        """What OOD outputs are made of, at every OOD point."""
        return self._superposed[0]

    @property
    def composed(self) -> SuperpositionScores:
        """The same, if true images stood in place of OOD outputs."""
        return self._superposed[1]

    @kept_property
    def _superposed(self) -> list[SuperpositionScores]:
        grid, is_ood = self.splits.grid, self.splits.is_ood
        outputs, space = self.bright_outputs, self.dataset.space
        compared = [outputs[is_ood], self.bright_truth[is_ood]]
        return compare_superpositions(grid, outputs, compared, is_ood, space)

    @kept_property
    def kernel_fits(self) -> dict[str, dict[str, KernelFit]]:
        """Kernel regressions from ID to OOD, of outputs and of the truth."""
        targets = {"model outputs": self.bright_outputs}
        targets["truth"] = self.bright_truth
        return fit_all_kernels(self.splits.grid, targets, self.splits.is_ood)

    @shared_property
    def superposed_inputs(self) -> np.ndarray | None:
        """Bright images of mean codes, [n_ood, F, pixels]."""
        images = draw_superposed_inputs(self.run.model, self.splits)
        if images is None:
            return None
        flat = brighten(self.dataset, images.reshape(-1, *images.shape[2:]))
        return flat.reshape(*images.shape[:2], -1)

    @cached_property
    def truth_sharing(self) -> float | None:
        """R^2 of true OOD images on those that share a factor, at a sample."""
        splits, rows = self.splits, np.flatnonzero(self.splits.is_ood)
        chosen = choose_rows(len(rows), TRUTH_POINTS)
        shown = splits.is_id.copy()
        shown[rows[chosen]] = True
        points = splits.grid, self.bright_truth, splits.is_ood
        parts = [part[shown] for part in points]
        r2 = compute_sharing(*parts, self.dataset.space)["sharing"]
        return mean_or_none(r2[np.isfinite(r2)])

    def align(self, gram: np.ndarray) -> dict[str, float | None]:
        """Agreement of similarities [n, n] with ideal kernels, over OOD points.

        Over two ordered factors also with the overlap of two bumps in place of
        each delta (`alignment_factorized_smooth`); `alignment_radial` is the
        conjunctive one, which then is a Gaussian of the distance alone.
        """
        points = (gram, self.splits.grid, self.splits.is_ood)
        if not self.is_plane:
            return summarize_alignment(*points)
        smooth = summarize_alignment(*points, self.run.config.data.sigma)
        return {
            **summarize_alignment(*points),
            "alignment_factorized_smooth": smooth["alignment_factorized"],
            "alignment_radial": smooth["alignment_conjunctive"],
        }

    @property
    def curves(self) -> list[Curve]:
        """Lines through a complete grid, where one factor is ordered."""
        is_complete = self.splits.is_complete
        return list_curves(self.dataset.space) if is_complete else []

    @cached_property
    def gaps(self) -> list[Curve]:
        """The curves with a held-out point between two known ones."""
        return [
            curve
            for curve in self.curves
            if len(interpolation.find_edges(*self._describe_curve(curve))[0])
        ]

    def score_gap(self, curve: Curve) -> interpolation.Interpolation:
        """Interpolation scores of the held-out points of a curve."""
        images = self.bright_outputs, self.bright_truth
        return interpolation.compute_interpolation(
            *(part[curve.rows] for part in images), *self._describe_curve(curve)
        )

    def compare_gap(self, curve: Curve, stage: str) -> dict[str, float | None]:
        """Steps and angles of a stage, or of `TRUTH`, in a gap over outside."""
        if stage == TRUTH:
            values = self.bright_truth[curve.rows]
        else:
            grid, model = self.splits.grid[curve.rows], self.run.model
            reader = stage_blocks.StageReader(model, len(grid), [stage])
            ((_, _, blocks),) = reader.iterate(grid)
            values = np.concatenate(list(blocks), axis=1)  # [points, units]
        return compute_gap_statistics(values, *self._describe_curve(curve))

    def _describe_curve(self, curve: Curve) -> tuple[np.ndarray, bool]:
        """Which points are held out, and whether the curve is closed."""
        return self.splits.is_ood[curve.rows], curve.factor.periodic

    @cached_property
    def bright_outputs(self) -> np.ndarray:
        """Outputs as bumps of height 1 on 0 (`brighten`), [n, pixels]."""
        return brighten(self.dataset, self.evaluation.images)

    @cached_property
    def bright_truth(self) -> np.ndarray:
        """True images likewise, [n, pixels]."""
        return brighten(self.dataset, self.evaluation.truth)
