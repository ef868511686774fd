"""A TFDS dataset of somebody else runs no code of theirs."""

import json
import sys
from pathlib import Path

import pytest

from tfcomp.datasets.table_factors import TableError
from tfcomp.datasets.tfds_tables import check_features, read_tfds

GOOD = "tensorflow_datasets.core.features.image_feature.Image"
EVIL = "evil_features.Image"
NESTED = {"featuresDict": {"features": {"image": {"pythonClassName": EVIL}}}}


def write(folder: Path, features: object) -> Path:
    """The folder of a dataset, as far as TFDS reads it first."""
    folder.mkdir(parents=True)
    (folder / "features.json").write_text(json.dumps(features))
    (folder / "dataset_info.json").write_text('{"name": "ex"}')
    return folder


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that appears when the stranger's module is imported."""
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w').close()"
    (tmp_path / "evil_features.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "evil_features", raising=False)
    return mark


@pytest.mark.parametrize(
    "features",
    [
        {"pythonClassName": EVIL},
        {"python_class_name": EVIL},
        {"type": EVIL, "content": {}},
        {"pythonClassName": GOOD, **NESTED},
        {"pythonClassName": GOOD, "sequence": [NESTED]},
        {"pythonClassName": "tensorflow_datasets_evil.Image"},
    ],
)
def test_classes_of_others(features: dict, evil: Path, tmp_path: Path) -> None:
    write(tmp_path / "data" / "ex" / "1.0.0", features)
    with pytest.raises(TableError, match="classes of tensorflow_datasets"):
        read_tfds("ex", str(tmp_path / "data"))
    assert not evil.exists()


def test_what_tfds_writes_is_taken(tmp_path: Path) -> None:
    label = {"pythonClassName": GOOD, "classLabel": {"type": "int64"}}
    check_features(write(tmp_path / "a", {**label, "features": [label]}))
