"""Modules of PyTorch as they are: modes, types, layers, exact derivatives."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tfcomp
from tests.datasets.own_tables import CLASSES, IMAGES
from tfcomp.datasets.factor_table import FactorTable

torch = pytest.importorskip("torch")
from tfcomp.models.loading import TorchModule  # noqa: E402

TABLE = FactorTable(IMAGES, CLASSES, names=list("abc"))
NUM_PIXELS = 30  # 5 x 6


def make_decoder(dtype: Any = torch.float32) -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    hidden = nn.Sequential(nn.Linear(3, 8), nn.Tanh())
    module = nn.Sequential()
    module.add_module("hidden", hidden)
    module.add_module("drop", nn.Dropout(0.5))
    module.add_module("pixels", nn.Linear(8, NUM_PIXELS))
    return module.to(dtype)


@pytest.mark.parametrize(
    "dtype, inputs",
    [
        (torch.float32, "values"),
        (torch.float64, "unit"),
    ],
)
def test_geometry_is_exact(dtype, inputs):
    module = make_decoder(dtype)

    result = tfcomp.evaluate(
        module,
        TABLE,
        "a:1,b:1",
        stages=["hidden.1"],
        inputs=inputs,
    )

    grid = result.dataset.splits.grid
    scale = np.ones(3)
    if inputs == "unit":
        scale = 1 / grid.max(axis=0)  # values begin with 0
    points = torch.tensor(scale * grid, dtype=dtype)
    module.eval()
    for name, part in (("hidden.1", module[0]), ("image", module)):
        compute = torch.func.vmap(torch.func.jacrev(part))
        jacobians = compute(points).detach()
        slopes = jacobians.double().numpy() * scale
        expected = np.einsum("nki,nkj->nij", slopes, slopes)
        assert_allclose(result.geometry(name), expected, rtol=1e-3, atol=1e-6)
    assert not result.analysis.nondifferentiable
    assert result.analysis.interactions == {}


@pytest.fixture
def training() -> Any:
    """A module in training, but for one layer."""
    module = make_decoder(torch.bfloat16)
    module.train()
    module.hidden.eval()
    return module


def check_is_untouched(module: Any):
    assert module.training
    assert module.drop.training
    assert not module.hidden.training
    for parameter in module.parameters():
        assert parameter.grad is None
        assert parameter.requires_grad
    for part in module.modules():
        assert not part._forward_hooks


def test_a_module_is_as_before(training):
    before = {}
    for name, value in training.state_dict().items():
        before[name] = value.clone()
    table = FactorTable(IMAGES, CLASSES, kinds=["categorical", "", ""])

    result = tfcomp.evaluate(training, table, stages=["hidden"])

    # Categories have no column.
    assert result.geometry("hidden").shape[1:] == (2, 2)
    check_is_untouched(training)
    for name, value in training.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_module_that_fails_is_as_before(training):
    call = TorchModule(training, ["hidden"])
    wrong = np.zeros((2, 5), np.float32)

    with pytest.raises(ValueError, match="cannot be called") as caught:
        call(wrong)

    assert "\n" not in str(caught.value)
    check_is_untouched(training)


def test_a_module_without_derivatives_has_differences():
    class Steps(torch.nn.Module):
        def forward(self, factors: Any) -> Any:
            return torch.from_numpy(TABLE.draw(factors.numpy()))

    result = tfcomp.evaluate(Steps(), TABLE)
    assert result.geometry("image").any()
    assert result.analysis.nondifferentiable == ["image"]


def test_modules_of_other_forms():
    class Pair(torch.nn.Module):
        def forward(self, factors: Any) -> Any:
            return factors, factors

    with pytest.raises(ValueError, match="no layer 'hiden', did you mean hid"):
        tfcomp.evaluate(make_decoder(), TABLE, stages=["hiden"])
    with pytest.raises(ValueError, match="2 outputs"):
        tfcomp.evaluate(Pair(), TABLE)


def test_encoders_get_channels_first():
    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 2, 1)
            self.flat = torch.nn.Flatten()

        def forward(self, images: Any) -> Any:
            assert tuple(images.shape[1:]) == (3, 4, 5)
            return self.flat(self.conv(images))

    rng = np.random.default_rng(0)
    colors = rng.random((24, 4, 5, 3), dtype=np.float32)
    table = FactorTable(colors, CLASSES)
    module = Encoder()

    result = tfcomp.evaluate_encoder(module, table, codes=False)

    images = torch.from_numpy(table.draw(table.points))
    with torch.no_grad():
        convolved = module.conv(images.permute(0, 3, 1, 2))
    activations = result.activations("conv")
    expected = convolved.numpy().reshape(activations.shape)
    assert result.stages == ["conv", "latents", "image"]
    assert_allclose(activations, expected, atol=1e-6)
