"""Coverage without training: predictors without a network, and embeddings.

Both make tables as `tfcomp.read_runs` does, for `tfcomp.coverage_table`
and `plot_coverage`.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from numpy import ndarray as Array

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import solvable
from tfcomp.datasets.dataset import make_dataset
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import add_seed, list_regions
from tfcomp.metrics.references import score_predicted
from tfcomp.representations import additivity, scores
from tfcomp.tables.flatten import Run, list_numbers
from tfcomp.tables.read import Results

PREDICTORS = {"additive": "additive", "nearest_id": "nearest training image"}
Tables = tuple[pd.DataFrame, pd.DataFrame]


def cover_references(
    config: RunConfig,
    coverage: str,
    num_seeds: int = 5,
) -> Tables:
    """Scores predictors without a network at every coverage.

    Args:
        config: A run, which describes the data; its region does not count.
        coverage: Shares of combinations in training, as `random:.1,.2,.4`.
        num_seeds: The number of splits at each coverage, which differ if
            they are random.

    Returns:
        The tables `runs`, which differ in `predictor`, and `numbers`, with
        `ood/r2` and `ood/relative_mse`.

    Raises:
        ConfigError: If the coverage has another form, or does not fit the data.
        RunError: For unreadable data.
    """
    runs: list[Run] = []
    for region, seed in _list_splits(
        coverage,
        num_seeds,
    ):
        data = dataclasses.replace(
            config.data,
            region=add_seed(region, seed),
        )
        dataset = make_dataset(
            dataclasses.replace(
                config,
                data=data,
            )
        )
        dataset.prepare()
        references = score_predicted(
            dataset,
            dataset.grid_images,
        )
        certificates = solvable.certify_dataset(
            dataset,
            max_order=1,
        )
        share = solvable.cover_combinations(dataset)
        metrics: dict[str, Any] = {
            "coverage": {"combinations": share},
            "certificate": solvable.summarize_certificates(
                dataset,
                certificates,
            ),
        }
        for name, label in PREDICTORS.items():
            metrics["ood"] = {
                "relative_mse": references[name].get("ood"),
                "r2": references[name].get("ood_r2"),
            }
            _add_run(
                runs,
                metrics,
                predictor=label,
                region=region,
                seed=seed,
            )
    results = Results(runs)
    return results.runs, results.numbers


def cover_embeddings(
    embeddings: Any | Mapping[str, Any],
    table: FactorTable | pd.DataFrame,
    coverage: str,
    *,
    seeds: int = 5,
) -> Tables:
    """Scores embeddings at every coverage; nothing is trained.

    Sums of parts and linear discriminants are fitted to combinations of a split
    and tested on the others.

    Args:
        embeddings: As for `evaluate_embeddings`.
        table: As for `evaluate_embeddings`.
        coverage: Shares of combinations that are fitted, as `random:.1,.2,.4`,
            `uselis:4:1,2` or `orthotopic:0,1`.
        seeds: The number of splits at each coverage, which differ if
            they are random.

    Returns:
        The tables `runs`, which differ in `layer`, and `numbers`, with
        `composed_ood` (error of a sum of parts over the error of the mean)
        and `accuracy_ood`, for `coverage_table` and `plot_coverage`.

    Raises:
        ValueError: As for `evaluate_embeddings`.
        ConfigError: If the coverage has another form, or does not fit the data.

    Example:
        >>> levels = np.array(list(np.ndindex(6, 6)))
        >>> parts = np.random.default_rng(0).normal(size=(2, 6, 8))
        >>> sums = parts[0, levels[:, 0]] + parts[1, levels[:, 1]]
        >>> table = pd.DataFrame(levels, columns=["x", "y"])
        >>> tables = tfcomp.cover_embeddings(sums, table, "random:.2,.5,.7")
        >>> rows = tfcomp.coverage_table(*tables, "composed_ood")
        >>> rows[["coverage", "mean", "determined", "enough"]].round(2)
           coverage  mean  determined  enough
        0      0.19  0.52        0.22    0.69
        1      0.50  0.11        0.87    0.69
        2      0.69  0.00        1.00    0.69
    """
    if not isinstance(table, FactorTable):
        table = FactorTable(None, table)
    layers = scores.read_layers(embeddings, len(table.rows))
    for name, values in layers.items():
        layers[name] = additivity.reduce_units(values)
    space = table.space
    classes = space.to_index(table.points)
    index = classes[table.rows]

    runs: list[Run] = []
    for region, seed in _list_splits(coverage, seeds):
        drawn = parse_region(add_seed(region, seed), space)
        is_ood = drawn.contains(table.points)
        mask = is_ood[table.rows]
        facts = _describe_split(classes, is_ood)
        for name, values in layers.items():
            nearest = scores.rate_nearest(
                values,
                index,
                mask,
                space,
            )
            composition = additivity.measure_composition(
                values,
                index,
                space.shape,
                mask,
            )
            metrics = {
                **facts,
                "references": {"nearest_id": {"composed_ood": nearest}},
                **composition,
            }
            _add_run(
                runs,
                metrics,
                layer=name,
                region=region,
                seed=seed,
            )
    results = Results(runs)
    return results.runs, results.numbers


def _describe_split(classes: Array, is_ood: Array) -> dict[str, Any]:
    """Returns coverage and certificate of a split, as in `metrics.json`.

    Args:
        classes: Grid indices of the combinations, [n, F].
        is_ood: Which of them are held out, [n].
    """
    certificate = solvable.certify(
        classes[~is_ood],
        classes[is_ood],
        1,
    )
    certified = None
    if certificate is not None:
        certified = float(certificate.certified.mean())
    return {
        "coverage": {"combinations": float(1 - is_ood.mean())},
        "certificate": {"1": {"certified": certified}},
    }


def _list_splits(coverage: str, num_seeds: int) -> Iterator[tuple[str, int]]:
    """Lists regions and seeds."""
    if num_seeds < 1:
        raise ConfigError("seeds", "must be at least 1", num_seeds)
    for region in list_regions(coverage):
        for seed in range(num_seeds):
            yield region, seed


def _add_run(runs: list[Run], metrics: Mapping[str, Any], **row: Any) -> None:
    """Adds a run with these numbers, as `metrics.json` has them."""
    row["run"] = str(len(runs))
    runs.append(Run(row, list(list_numbers(metrics, {}))))
