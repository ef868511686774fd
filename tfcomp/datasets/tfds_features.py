"""A check of TFDS datasets of others: TFDS imports the classes they name."""

import contextlib
import json
from pathlib import Path

from tfcomp.datasets.table_checks import TableError
from tfcomp.storage.files import read_json

TFDS_CODE = "tensorflow_datasets."
# Keys of a class or message: of TFDS, Protocol Buffers, and older versions.
CLASS_KEYS = ("pythonClassName", "python_class_name", "type", "proto_cls")


def check_features(folder: Path) -> None:
    """Refuses classes of others, also in texts: TFDS imports named classes."""
    file = folder / "features.json"
    nodes: list[object] = [read_json(file)] if file.exists() else []
    while nodes:
        node = nodes.pop()
        if isinstance(node, str):
            with contextlib.suppress(ValueError, RecursionError):
                nodes.append(json.loads(node))
        elif isinstance(node, list):
            nodes += node
        elif isinstance(node, dict):
            nodes += node.values()
            for name in filter(None, map(node.get, CLASS_KEYS)):
                # Elsewhere "type" is a word such as "int64".
                if "." in str(name) and not str(name).startswith(TFDS_CODE):
                    rule = f"must be classes of {TFDS_CODE[:-1]}"
                    raise TableError("features", rule, name)
