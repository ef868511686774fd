"""Two objects whose composition is known: a sum, a product, an occlusion.

The data for a truth table of decoders: those that compose as the data do can
draw pairs of places that training never showed together.
"""

from typing import Any

from tfcomp.config.run_config import RunConfig
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.datasets.regions import parse_region
from tfcomp.datasets.splits import draw_training_table, make_splits

# Where centers are, in image sides: the objects stay inside of the image.
MARGIN = 0.25


def make_composed(config: RunConfig) -> Dataset:
    """A disk a and a square b at `--num_positions` places along each axis.

    Raises:
        ConfigError: For an impossible region or too many examples.
    """
    data = config.data
    size, composition = data.grid_size, data.composition
    low, high = MARGIN * (size - 1), (1 - MARGIN) * (size - 1)
    space = FactorSpace(
        tuple(
            Factor(name, data.num_positions, low, high, "px")
            for name in ("x_a", "y_a", "x_b", "y_b")
        )
    )
    region = parse_region(data.region, space)
    train = draw_training_table(config, space, region)

    def render(factors: Any) -> Any:
        # Imported here: a bad flag must be answered without TensorFlow.
        from tfcomp.datasets.renderers import render_composed

        return render_composed(factors, size, composition)

    return Dataset(
        name=data.dataset,
        space=space,
        region=region,
        splits=make_splits(space, region, train, config.eval_points),
        render=render,
        image_shape=(size, size, 1),
        polarity="dark" if composition == "product" else "bright",
        has_position=False,
        size_flag="num_positions",
    )
