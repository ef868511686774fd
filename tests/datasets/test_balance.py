"""Images of rare values are drawn more often; nothing else changes."""

import numpy as np

from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.datasets.batches import MAX_REPEATS, make_batches, repeat_rare

FLAGS = ["--flagfile=sprites", "--grid_size=8", "--sprite_sizes=2,2,2,4,4"]


def test_rows_come_as_often_as_their_rarest_value_is_rare() -> None:
    space = make_dataset(parse_config(FLAGS)).space
    values = [factor.values() for factor in space]
    table = np.array(
        [
            [values[0][i % 2], values[1][0], values[2][0], values[3][x], 1.0]
            for i, x in enumerate([0] * 30 + [1] * 29 + [2] * 1)
        ],
        np.float32,
    )
    rows = repeat_rare(space, table)
    # The 60 rows have three values of x: 20 rows each would be even.
    np.testing.assert_array_equal(
        np.bincount(rows), [1] * 59 + [20], strict=False
    )
    assert (np.bincount(repeat_rare(space, table[:30])) == 1).all()
    many = np.repeat(table[:1], 2 * MAX_REPEATS * 2 + 2, axis=0)
    many[-1] = table[-1]
    assert np.bincount(repeat_rare(space, many))[-1] == MAX_REPEATS
    table[0, 3] = np.nan
    assert np.bincount(repeat_rare(space, table))[0] == 1


def test_batches_draw_them_and_scores_do_not_change() -> None:
    region = "--region=wiedemer:orthogonal"
    plain, even = (
        make_dataset(parse_config([*FLAGS, region, *more]))
        for more in ([], ["--balance"])
    )
    np.testing.assert_array_equal(plain.splits.train, even.splits.train)
    expected = repeat_rare(even.space, even.splits.train)
    assert len(expected) > len(even.splits.train)
    batches = make_batches(even, len(expected), 0, num_steps=1)
    ((factors, _),) = batches.as_numpy_iterator()
    np.testing.assert_array_equal(
        np.sort(factors, axis=0), np.sort(even.splits.train[expected], axis=0)
    )
