"""Forced rendering: matrices in pixel space, combined by convolutions."""

from typing import Any

from tfcomp.config.errors import ConfigError
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset
from tfcomp.datasets.factors import FactorSpace
from tfcomp.models.model_registry import MODELS, Model
from tfcomp.models.model_rules import AXES

_CHOICES = {"find": AXES, "none": (), **{axis: (axis,) for axis in AXES}}


def parse_axes(spec: str, space: FactorSpace) -> dict[str, tuple[str, ...]]:
    """Returns the axes by factor, none for a factor with a low-rank matrix.

    The spec is `find`, or a choice for some factors, as `x:columns,y:rows`; a
    ConfigError says what it must be.
    """
    found: dict[str, tuple[str, ...]]
    found = {f.name: () if f.categorical or f.periodic else AXES for f in space}
    for part in spec.split(",") if spec != "find" else ():
        name, _, choice = part.partition(":")
        if name not in found or choice not in _CHOICES:
            factors, choices = ", ".join(found), ", ".join(_CHOICES)
            rule = f"must be find, or give factors ({factors}) a choice "
            rule += f"({choices}), as in x:columns,y:rows"
            raise ConfigError("axes", rule, spec)
        found[name] = _CHOICES[choice]
    return found


def check_low_rank(config: RunConfig, dataset: Dataset) -> None:
    """Checks that ranks fit into the image and values have their own units."""
    model = config.model
    rows, columns, _ = dataset.image_shape
    if model.rank > min(rows, columns):
        size = f"the smaller side of {rows} x {columns} pixels"
        if dataset.size_flag == "grid_size":
            size = f"--grid_size={rows}"
        raise ConfigError("rank", f"must be at most {size}", model.rank)
    if model.encoding not in ("one_hot", "bump"):
        rule = f"must be one_hot or bump for the model {model.model}"
        raise ConfigError("encoding", rule, model.encoding)


def check_hard_rendering(config: RunConfig, dataset: Dataset) -> None:
    """Checks ranks, codes and axes."""
    check_low_rank(config, dataset)
    parse_axes(config.model.axes, dataset.space)


def cost_low_rank(config: RunConfig) -> int:
    """Returns the multiplications of two vectors of each term."""
    return 2 * config.model.rank * config.data.grid_size**2


def cost_hard_rendering(config: RunConfig) -> int:
    """Returns the multiplications of a hidden convolution."""
    return 9 * config.model.width**2 * config.data.grid_size**2


@MODELS.register(
    "hard_rendering",
    check=check_hard_rendering,
    cost=cost_hard_rendering,
)
@MODELS.register("low_rank", check=check_low_rank, cost=cost_low_rank)
def build_low_rank(config: RunConfig, dataset: Dataset) -> Model:
    """The network of section 4.1 and appendix C, or our `hard_rendering`.

    Each factor's matrix is a channel of `stage_0`; `--depth` times a PReLU
    and a 3 x 3 transposed convolution follow (`stage_1`, ...), and one more
    makes the image. There are as many channels as factors; in `hard_rendering`
    hidden layers have `--width`, and a factor with axes (`--axes`) has profiles
    along these instead of matrices.
    """
    import keras

    from tfcomp.models import low_rank
    from tfcomp.models.axis_embedding import AxisEmbedding
    from tfcomp.models.encodings.base import make_encoding
    from tfcomp.models.encodings.codes import FactorIndex
    from tfcomp.models.low_rank_embedding import LowRankEmbedding
    from tfcomp.models.regularizers import (
        EntropyRegularizer,
        VarianceRegularizer,
    )

    model, space = config.model, dataset.space
    axes, channels = {}, len(space)
    if model.model == "hard_rendering":
        axes, channels = parse_axes(model.axes, space), model.width
    if model.encoding == "one_hot":
        # A one-hot code times all matrices selects one of them; looking it
        # up by its index is the same at a fraction of the cost.
        encoding, inputs = FactorIndex(space, name="code"), "index"
    else:
        encoding, inputs = make_encoding(config, space), "code"
    factors = keras.Input((len(space),), dtype="float32", name="factors")
    parts = encoding.split(encoding(factors))
    penalties: dict[str, Any] = {}
    reduction = model.penalty_reduction
    if model.entropy_weight:
        entropy = EntropyRegularizer(model.entropy_weight, reduction)
        penalties["coefficient_regularizer"] = entropy
    if model.variance_weight:
        variance = VarianceRegularizer(
            model.variance_weight, model.penalty_basis, reduction
        )
        penalties["left_regularizer"] = variance
        penalties["right_regularizer"] = variance
    images, size = [], dataset.image_shape[:2]
    for factor, part in zip(space, parts, strict=True):
        named: dict[str, Any] = {
            "inputs": inputs,
            "name": f"embedding_{factor.name}",
        }
        if found := axes.get(factor.name):
            layer = AxisEmbedding(
                factor.size, size, found, model.axis_weight, **named
            )
        else:
            layer = LowRankEmbedding(
                factor.size, size, model.rank, **penalties, **named
            )
        images.append(layer(part))
    hidden = low_rank.Stack(name="stage_0")(images)  # [n, rows, columns, F]
    for index in range(1, model.depth + 1):
        convolve = low_rank.make_convolution(channels, f"stage_{index}")
        hidden = convolve(low_rank.make_prelu(index)(hidden))
    draw = low_rank.make_convolution(
        dataset.image_shape[2], "image", dtype="float32"
    )
    image = draw(low_rank.make_prelu(model.depth + 1)(hidden))
    return keras.Model(factors, image, name=model.model)
