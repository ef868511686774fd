"""Writes the examples of a run to disk, as a TensorFlow dataset.

    tfcomp materialize donut --examples_dir=examples

Training with the same `--examples_dir` then reads the same bits.
"""

from typing import Any

from tfcomp.config.command import Command
from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import make_config
from tfcomp.config.run_flags import define_run_flags
from tfcomp.datasets.notes import print_notes
from tfcomp.models.registry import check_config
from tfcomp.storage.output_folders import check_folder


def write_examples(settings: dict[str, Any]) -> int:
    """Writes the dataset unless it exists."""
    config = make_config(settings)
    dataset = check_config(config)
    print_notes(dataset)
    check_folder("examples_dir", config.data.examples_dir)
    with start_tensorflow():
        from tfcomp.datasets.materialized import materialize
    folder = materialize(config, config.data.examples_dir, dataset)
    print(f"examples  {folder}")
    return 0


main = Command(purpose=__doc__, table=define_run_flags, action=write_examples)
