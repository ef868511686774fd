"""MPI3D: its file, and its published splits."""

from pathlib import Path

import numpy as np
import pytest

from tests.datasets.test_regions import make_published
from tfcomp.config.errors import ConfigError
from tfcomp.datasets import parse_region
from tfcomp.datasets.tables import read_table


def test_complex_mpi3d(tmp_path: Path) -> None:
    count = 460_800
    images = np.zeros((count, 1, 1, 3), np.uint8)
    images[-1] = 255
    np.savez(tmp_path / "mpi3d.npz", images=images)
    table = read_table(str(tmp_path / "mpi3d.npz"))
    assert table.space.shape == (4, 4, 2, 3, 3, 40, 40)
    last = np.array([[f.values()[-1] for f in table.space]])
    assert table.draw(last).tolist() == [[[[1.0, 1.0, 1.0]]]]
    assert not table.space["shape"].names


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ("montero:range", 86_400),
        ("montero:range_color", 86_400),
        ("montero:element", 16),
    ],
)
def test_montero_holds_out_as_many_as_published(spec: str, count: int) -> None:
    space = make_published("MPI3D")
    assert parse_region(spec, space).contains(space.grid()).sum() == count


def test_a_kind_of_split_that_nobody_published() -> None:
    with pytest.raises(ConfigError, match="another region for MPI3D"):
        parse_region("orthotopic:0", make_published("MPI3D"))
