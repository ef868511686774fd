"""Forced rendering: images of factors' values, combined by convolutions.

Section 4.1 and appendix C of the paper; penalties are in
`tfcomp.models.forced_rendering`.
"""

from __future__ import annotations

from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models import registry
from tfcomp.models.registry import AXES, MODELS, count_convolution, keras

_AXES_BY_CHOICE = {"find": AXES, "none": (), **{axis: (axis,) for axis in AXES}}


def _check_low_rank(config: RunConfig, dataset: Dataset) -> None:
    rows, columns, _ = dataset.image_shape
    if config.model.rank > min(rows, columns):
        size = f"the smaller side of {rows} x {columns} pixels"
        if dataset.size_flag == "grid_size":
            size = f"--grid_size={rows}"
        raise registry.refuse(config, "rank", f"must be at most {size}")
    if config.model.encoding not in ("one_hot", "bump"):
        raise registry.refuse(config, "encoding", "must be one_hot or bump")
    if config.model.model == "hard_rendering":
        parse_axes(config.model.axes, dataset.space)


def parse_axes(spec: str, space: FactorSpace) -> dict[str, tuple[str, ...]]:
    """Returns the axes by factor of `find`, or of `x:columns,y:rows`."""
    axes: dict[str, tuple[str, ...]]
    axes = {f.name: () if f.categorical or f.periodic else AXES for f in space}
    for part in spec.split(",") if spec != "find" else ():
        name, _, choice = part.partition(":")
        if name not in axes or choice not in _AXES_BY_CHOICE:
            factors, choices = ", ".join(axes), ", ".join(_AXES_BY_CHOICE)
            rule = f"must be find, or give factors ({factors}) a choice "
            rule += f"({choices}), as in x:columns,y:rows"
            raise ConfigError("axes", rule, spec)
        axes[name] = _AXES_BY_CHOICE[choice]
    return axes


def _count_matrices(config: RunConfig) -> int:
    return 2 * config.model.rank * config.data.grid_size**2


@MODELS.register("low_rank", check=_check_low_rank, cost=_count_matrices)
@MODELS.register(
    "hard_rendering", check=_check_low_rank, cost=count_convolution
)
def build_low_rank(config: RunConfig, dataset: Dataset) -> keras.Model:
    """The network of section 4.1 and appendix C, or our `hard_rendering`.

    Each factor's matrix is a channel of `stage_0`; `--depth` times a PReLU
    and a 3 x 3 transposed convolution follow (`stage_1`, ...), and one more
    makes the image. Factors with `--axes` have profiles instead of matrices.
    """
    from tfcomp.models import forced_rendering as rendering
    from tfcomp.models.encodings import FactorIndex
    from tfcomp.models.value_embedding import LowRankEmbedding

    model, space = config.model, dataset.space
    axes, channels = {}, len(space)
    if model.model == "hard_rendering":
        axes, channels = parse_axes(model.axes, space), model.width
    named: dict[str, Any] = {"inputs": "code"}
    if model.encoding == "one_hot":
        # A one-hot code times all matrices selects one of them; looking it
        # up by its index is the same at a fraction of the cost.
        named["inputs"] = "index"
        encoding = FactorIndex(space, name="code")
    else:
        encoding = registry.make_encoding(config, space)
    factors = registry.make_input(dataset)
    parts = encoding.split(encoding(factors))
    penalties: dict[str, Any] = {}
    reduction = model.penalty_reduction
    if weight := model.entropy_weight:
        entropy = rendering.EntropyRegularizer(weight, reduction)
        penalties["coefficient_regularizer"] = entropy
    if weight := model.variance_weight:
        variance = rendering.VarianceRegularizer(
            weight, model.penalty_basis, reduction
        )
        sides = ("left_regularizer", "right_regularizer")
        penalties |= dict.fromkeys(sides, variance)
    images, size = [], dataset.image_shape[:2]
    for factor, part in zip(space, parts, strict=True):
        named["name"], values = f"embedding_{factor.name}", factor.size
        if along := axes.get(factor.name):
            layer = rendering.AxisEmbedding(
                values, size, along, model.axis_weight, **named
            )
        else:
            layer = LowRankEmbedding(
                values, size, model.rank, **penalties, **named
            )
        images.append(layer(part))
    hidden = rendering.Stack(name="stage_0")(images)  # [n, rows, columns, F]
    for index in range(1, model.depth + 1):
        stage = f"stage_{index}"
        hidden = rendering.convolve(hidden, index, channels, name=stage)
    last = {"name": "image", "dtype": "float32"}
    channels = dataset.image_shape[2]
    image = rendering.convolve(hidden, model.depth + 1, channels, **last)
    return keras.Model(factors, image, name=model.model)
