"""Forced rendering: images of factors' values, combined by convolutions.

Section 4.1 and appendix C of the paper; penalties are in
`tfcomp.models.forced_rendering`.
"""

from __future__ import annotations

from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import Factor, FactorSpace
from tfcomp.models import registry
from tfcomp.models.registry import AXES, MODELS, count_convolution, keras

Axes = dict[str, tuple[str, ...]]

_AXES_BY_CHOICE: Axes = {
    "find": AXES,
    "none": (),
    "rows": ("rows",),
    "columns": ("columns",),
}


def _check_low_rank(config: RunConfig, dataset: Dataset) -> None:
    rows, columns, _ = dataset.image_shape
    model = config.model
    shorter = min(rows, columns)
    if model.rank > shorter:
        size = f"the smaller side of {rows} x {columns} pixels"
        if dataset.size_flag == "grid_size":
            size = f"--grid_size={rows}"
        raise registry.refuse(config, "rank", f"must be at most {size}")
    if model.encoding not in ("one_hot", "bump"):
        raise registry.refuse(config, "encoding", "must be one_hot or bump")
    if model.model == "hard_rendering":
        parse_axes(model.axes, dataset.space)


def parse_axes(spec: str, space: FactorSpace) -> Axes:
    """Parses `--axes`: `find`, or a choice of factors as `x:columns,y:rows`.

    Args:
        spec: The value of the flag.
        space: The factors. Those that are not named keep both axes if they are
            ordered, and none if they are categorical or periodic.

    Returns:
        The possible axes of each factor.

    Raises:
        ConfigError: If a factor or a choice is unknown.
    """
    axes: Axes = {}
    for factor in space:
        axes[factor.name] = AXES
        if factor.categorical or factor.periodic:  # without an order
            axes[factor.name] = ()
    if spec == "find":
        return axes

    for part in spec.split(","):
        name, _, choice = part.partition(":")
        if name not in axes or choice not in _AXES_BY_CHOICE:
            factors = ", ".join(axes)
            choices = ", ".join(_AXES_BY_CHOICE)
            rule = (
                f"must be find, or give factors ({factors}) a choice "
                f"({choices}), as in x:columns,y:rows"
            )
            raise ConfigError("axes", rule, spec)
        axes[name] = _AXES_BY_CHOICE[choice]
    return axes


def _count_matrices(config: RunConfig) -> int:
    num_pixels = config.data.grid_size**2
    return 2 * config.model.rank * num_pixels


@MODELS.register(
    "low_rank",
    check=_check_low_rank,
    cost=_count_matrices,
)
@MODELS.register(
    "hard_rendering",
    check=_check_low_rank,
    cost=count_convolution,
)
def build_low_rank(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The network of section 4.1 and appendix C, or our `hard_rendering`.

    Each factor's matrix is a channel of `stage_0`; `--depth` times a PReLU and
    a 3 x 3 transposed convolution follow (`stage_1`, ...), and one more makes
    the image. Factors with `--axes` have profiles instead of matrices. Do not
    use it for factors whose values lie on no grid: every value owns a matrix,
    and none lies between two.

    Args:
        config: The run.
        dataset: Its data, which have the size of images.
    """
    from tfcomp.models import pixels

    model = config.model
    space = dataset.space
    axes: Axes = {}
    filters = len(space)
    if model.model == "hard_rendering":
        axes = parse_axes(model.axes, space)
        filters = model.width

    factors, parts = _make_parts(config, dataset)
    penalties = _make_penalties(config)
    images = []
    for factor, part in zip(space, parts, strict=True):
        factor_axes = axes.get(factor.name, ())
        embedding = _make_embedding(
            config,
            dataset,
            factor,
            factor_axes,
            penalties,
        )
        image = embedding(part)
        images.append(image)
    stack = pixels.Stack(name="stage_0")
    hidden = stack(images)  # [n, rows, columns, F]

    for index in range(1, model.depth + 1):
        hidden = pixels.convolve(
            hidden,
            index,
            filters=filters,
            name=f"stage_{index}",
        )
    image = pixels.convolve(
        hidden,
        index=model.depth + 1,
        filters=dataset.image_shape[2],
        name="image",
        dtype="float32",
    )
    return keras.Model(factors, image, name=model.model)


def _make_parts(
    config: RunConfig,
    dataset: Dataset,
) -> tuple[keras.KerasTensor, list[keras.KerasTensor]]:
    """Makes the input of factors, and the code of each factor."""
    from tfcomp.models.encodings import FactorIndex

    space = dataset.space
    if config.model.encoding == "one_hot":
        # A one-hot code times all matrices selects one of them; looking it
        # up by its index is the same at a fraction of the cost.
        encoding = FactorIndex(space, name="code")
    else:
        encoding = registry.make_encoding(config, space)
    factors = registry.make_input(dataset)
    code = encoding(factors)
    return factors, encoding.split(code)


def _make_penalties(config: RunConfig) -> dict[str, Any]:
    """Makes the penalties of equations 9 to 11 that have a weight."""
    from tfcomp.models import forced_rendering as rendering

    model = config.model
    penalties: dict[str, Any] = {}
    if model.entropy_weight:
        entropy = rendering.EntropyRegularizer(
            model.entropy_weight,
            reduction=model.penalty_reduction,
        )
        penalties["coefficient_regularizer"] = entropy
    if model.variance_weight:
        variance = rendering.VarianceRegularizer(
            model.variance_weight,
            basis=model.penalty_basis,
            reduction=model.penalty_reduction,
        )
        penalties["left_regularizer"] = variance
        penalties["right_regularizer"] = variance
    return penalties


def _make_embedding(
    config: RunConfig,
    dataset: Dataset,
    factor: Factor,
    axes: tuple[str, ...],
    penalties: dict[str, Any],
) -> keras.Layer:
    """Makes the layer with the images of a factor's values."""
    from tfcomp.models.forced_rendering import AxisEmbedding, LowRankEmbedding

    inputs = "code"
    if config.model.encoding == "one_hot":
        inputs = "index"
    settings: dict[str, Any] = {
        "num_values": factor.size,
        "size": dataset.image_shape[:2],
        "inputs": inputs,
        "name": f"embedding_{factor.name}",
    }
    if axes:
        return AxisEmbedding(
            axes=axes,
            group_weight=config.model.axis_weight,
            **settings,
        )
    return LowRankEmbedding(
        rank=config.model.rank,
        **penalties,
        **settings,
    )
