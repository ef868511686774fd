"""Scores embeddings of a file as sums of parts of their factors.

    tfcomp embeddings clip.npz --region=shape:heart,x:20-31 --output=report

The file has `classes` [n, F] (with `names` and more as a table of images has)
or an array [n] for each factor, may have `images`, and every other array
[n, ...] is a layer. Prints the table of layers; --output writes the report.

    tfcomp embeddings clip.npz --coverage=random:.1,.2,.4

tells from which share of combinations on the others can be composed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import start_tensorflow
from tfcomp.config.run_flags import Command
from tfcomp.config.settings import split_names
from tfcomp.datasets.factor_table import FactorTable
from tfcomp.datasets.table_readers import read_embeddings
from tfcomp.datasets.tables import explain_damage
from tfcomp.storage.files import make_folder

SHOWN = (
    "layer classes additive_r2 additive_r2_whitened additive_r2_probes "
    "composed_ood nearest_ood accuracy_id accuracy_ood"
).split()
FLAGS = {
    "embeddings": ("", "The file, .npz."),
    "region": ("none", "Held-out combinations, as of tfcomp train."),
    "factors": ("", "Columns that are factors, as of tfcomp train."),
    "ignore": ("", "Columns that are left out, as of tfcomp train."),
    "eval_points": (4096, "Most combinations of geometry and pictures."),
    "output": ("", "Folder for the report; empty for none."),
    "coverage": (
        "",
        "Shares of combinations that are fitted, as random:.1,.2,.4: scores "
        "at each of them, in place of --region.",
    ),
    "seeds": (5, "With --coverage: random splits of each share."),
}


def score_file(settings: dict[str, Any]) -> int:
    """Reads the file, prints the scores and writes the report.

    Raises:
        ConfigError: A flag breaks its rule.
        RunError: The file cannot be read, or its content breaks a rule.
    """
    path = settings.pop("embeddings")
    output = settings.pop("output")
    coverage = settings.pop("coverage")
    num_seeds = settings.pop("seeds")
    if not path.endswith(".npz"):
        raise ConfigError("embeddings", "must name an .npz file", path)
    with explain_damage(path, "embeddings"):
        file, layers = read_embeddings(path)
        table = file.make_table(
            split_names(settings.pop("factors")),
            split_names(settings.pop("ignore")),
        )
    try:
        if coverage:
            print(_cover(layers, table, coverage, num_seeds, output))
            return 0

        with start_tensorflow():
            from tfcomp.report.representations import evaluate_embeddings
        result = evaluate_embeddings(layers, table, **settings)
    except ConfigError:
        raise
    except ValueError as error:
        raise RunError(f"--embeddings={path}: {error}") from error

    layers_table = result.tables["layers"][SHOWN]
    text = layers_table.to_string(index=False, float_format="{:.4g}".format)
    print(text)
    if output:
        print(f"report  {result.write_report(output)}")
    return 0


def _cover(
    layers: Mapping[str, Any],
    table: FactorTable,
    coverage: str,
    num_seeds: int,
    output: str,
) -> str:
    """Formats scores by coverage, and writes figures into a folder."""
    from tfcomp.figures.exhibits import save_exhibit, use_own_style
    from tfcomp.report import coverage as tables
    from tfcomp.report.untrained_coverage import cover_embeddings

    runs = cover_embeddings(layers, table, coverage, seeds=num_seeds)
    names = list(tables.EMBEDDED)
    if output:
        folder = make_folder(Path(output))
        with use_own_style():
            for exhibit in tables.make_exhibits(*runs, names):
                save_exhibit(exhibit, folder)
    coverages = [tables.coverage_table(*runs, name) for name in names]
    return tables.format_tables(coverages)


main = Command(
    purpose=__doc__,
    table=FLAGS,
    action=score_file,
)
