"""Scores embeddings of a file as sums of parts of their factors.

    tfcomp embeddings clip.npz --region=shape:heart,x:20-31 --output=report

The file has `classes` [n, F] (with `names` and more as a table of images has)
or an array [n] for each factor, may have `images`, and every other array
[n, ...] is a layer. Prints the table of layers; --output writes the report.
"""

from typing import Any

from tfcomp.config.command import Command
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.process import start_tensorflow
from tfcomp.config.settings import split_names
from tfcomp.datasets.table_readers import read_embeddings
from tfcomp.datasets.tables import explain_damage

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
}


def score_file(settings: dict[str, Any]) -> int:
    """Reads the file, prints the scores and writes the report.

    Raises:
        ConfigError: A flag breaks its rule.
        RunError: The file cannot be read, or its content breaks a rule.
    """
    path = settings.pop("embeddings")
    output = settings.pop("output")
    if not path.endswith(".npz"):
        raise ConfigError("embeddings", "must name an .npz file", path)
    with explain_damage(path, "embeddings"):
        file, layers = read_embeddings(path)
        table = file.make_table(
            split_names(settings.pop("factors")),
            split_names(settings.pop("ignore")),
        )
    with start_tensorflow():
        from tfcomp.report.representations import evaluate_embeddings
    try:
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


main = Command(
    purpose=__doc__,
    table=FLAGS,
    action=score_file,
)
