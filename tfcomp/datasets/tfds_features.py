"""Which TFDS datasets may be read: those that name no code of others."""

from pathlib import Path

from tfcomp.datasets.table_factors import TableError
from tfcomp.storage.files import read_json

TFDS_CODE = "tensorflow_datasets."
# Of a feature, as TFDS writes it, as Protocol Buffers also read it, and as
# TFDS wrote it once.
CLASS_KEYS = ("pythonClassName", "python_class_name", "type")


def check_features(folder: Path) -> None:
    """Refuses a TFDS dataset whose features are classes of others.

    TFDS imports the class that each feature names, so that a dataset of
    somebody else could run whatever lies in the current folder.

    Raises:
        TableError: Naming the first such class.
    """
    file = folder / "features.json"
    nodes: list[object] = [read_json(file)] if file.exists() else []
    while nodes:
        node = nodes.pop()
        if isinstance(node, list):
            nodes += node
        if not isinstance(node, dict):
            continue
        nodes += node.values()
        for name in filter(None, map(node.get, CLASS_KEYS)):
            # Elsewhere "type" is a word such as "int64".
            if "." in str(name) and not str(name).startswith(TFDS_CODE):
                rule = f"must be classes of {TFDS_CODE[:-1]}"
                raise TableError("features", rule, name)
