"""Lists held-out combinations that follow from the training combinations.

    tfcomp solvable sprites --region=wiedemer:diagonal:.4

For interactions of at most 1, 2 or 3 factors: the share that is determined, the
variance of a determined sum, and the fewest further images that determine all.
Held-out images that are equal to a training image are counted, and predictors
without a network are scored. Nothing is trained.

    tfcomp solvable sprites --coverage=random:.1,.2,.4

prints this for several shares of combinations in training.
"""

import json
from typing import Any

from absl import flags

from tfcomp.config.errors import RunError
from tfcomp.config.plugins import import_plugins
from tfcomp.config.process import quiet_startup
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import (
    TYPED,
    Command,
    define_run_flags,
    make_flags,
)
from tfcomp.datasets import Dataset, make_dataset, notes, solvable
from tfcomp.models.registry import describe_unused
from tfcomp.report.verbalize import describe_baselines

SHOWN = 5  # images of a list in words
FLAGS = {
    "json": (False, "Print JSON, with all images to add."),
    "coverage": (
        "",
        "Shares of combinations in training, as random:.1,.2,.4: prints what "
        "each of them determines, in place of --region.",
    ),
    "seeds": (5, "With --coverage: random splits of each share."),
}


def print_certificates(settings: dict[str, Any]) -> int:
    """Prints the certificates of the split that the flags describe."""
    as_json = settings.pop("json")
    coverage = settings.pop("coverage")
    num_seeds = settings.pop("seeds")
    config = make_config(settings)
    import_plugins(config.plugins)
    if coverage:
        with quiet_startup():
            from tfcomp.report.coverage import coverage_table, format_tables
            from tfcomp.report.untrained_coverage import cover_references

            tables = cover_references(config, coverage, num_seeds)
        print(format_tables([coverage_table(*tables)]))
        return 0

    dataset = make_dataset(config)
    orders = find_orders(dataset)
    facts, note = _find_facts(dataset)
    if as_json:
        content = {
            "factors": notes.list_factors(dataset),
            "orders": orders,
            **facts,
        }
        print(json.dumps(content, indent=2, allow_nan=False))
        return 0

    unused = describe_unused(config, settings[TYPED])
    if unused:
        print(unused)
    for line in dataset.list_notes():
        print(line)
    splits = dataset.splits
    print(
        f"{config.data.dataset}, {dataset.region.spec} held out: "
        f"{splits.all.is_ood.sum():,} of {len(splits.all):,} combinations, "
        f"{len(splits.train):,} training examples"
    )
    print(notes.format_factors(dataset))
    for order, result in orders.items():
        print(_format_order(order, result))

    lines = {
        "identifiable": notes.describe_identifiable(
            dataset.space.names,
            orders,
            facts.get("explained", {}),
        ),
        "copies": notes.describe_copies(facts.get("copies", {})) or note,
        "baselines": describe_baselines(facts.get("references", {})),
    }
    for name, line in lines.items():
        if line:
            print(f"{name}: {line}")
    return 0


def _find_facts(dataset: Dataset) -> tuple[dict[str, Any], str]:
    """Returns entries of `metrics.json`, and why there may be none."""
    try:
        with quiet_startup():
            from tfcomp.metrics.references import score_references

            dataset.prepare()
            facts = {
                "copies": dataset.copies.summary,
                "explained": solvable.explain_training(dataset),
                "references": score_references(dataset, dataset.grid_images),
            }
    except RunError as error:  # such as images that are not on this machine
        return {}, f"not computed ({error})"
    return {name: fact for name, fact in facts.items() if fact}, ""


def find_orders(dataset: Dataset) -> dict[str, dict[str, Any]]:
    """Certifies the held-out combinations of a dataset.

    Returns:
        By order of interactions: `certified`, `missing_rank`, the noise of a
        determined sum, and `images`, the fewest that determine all.
    """
    certificates = solvable.certify_dataset(dataset)
    orders: dict[str, dict[str, Any]] = {}
    orders |= solvable.summarize_certificates(dataset, certificates)
    for order, certificate in certificates.items():
        images = solvable.list_missing_images(dataset, certificate)
        orders[str(order)]["images"] = images
    return orders


def _format_order(order: str, result: dict[str, Any]) -> str:
    """Describes one order, with the first images to add."""
    missing = result["missing_rank"]
    if missing is None:
        return f"order {order}: not computed, it would take too much memory"

    share = "nothing is held out"
    if result["certified"] is not None:
        share = f"{notes.format_share(result['certified'])} determined"
        noise = notes.describe_noise(result)
        if noise:
            share += f" ({noise})"
    if not missing:
        return f"order {order}: {share}, no image is missing"

    images = "images determine"
    if missing == 1:
        images = "image determines"
    lines = [f"order {order}: {share}, {missing:,} more {images} all:"]
    for image in result["images"][:SHOWN]:
        cells = []
        for name, value in image.items():
            if not isinstance(value, str):
                value = f"{value:.4g}"
            cells.append(f"{name} {value}")
        lines.append(f"  {', '.join(cells)}")
    if missing > SHOWN:
        lines.append(f"  and {missing - SHOWN:,} more (--json lists them)")
    return "\n".join(lines)


def define_flags() -> flags.FlagValues:
    """Returns the flags of a run, and of this command."""
    return make_flags(FLAGS, define_run_flags())


main = Command(
    purpose=__doc__,
    table=define_flags,
    parts=("data",),
    action=print_certificates,
)
