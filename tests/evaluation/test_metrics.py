"""Metrics are declared once; what follows from that."""

import math
import subprocess
import sys

import pytest

from tfcomp.evaluation.metrics import (
    adopt_metrics,
    describe_user_metrics,
    find_limits,
    find_metric,
    list_charts,
    list_metrics,
    register_measure,
    unregister_all,
)
from tfcomp.statistics.limits import POSITIVE, REAL, SHARE, Limits
from tfcomp.statistics.metric import list_registered


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("factorization", Limits(0.5, 1.0)),
        ("sharing_far_r2", Limits(high=1.0)),
        ("loss", REAL),
        # Of a part of a run; a name may be the end of another.
        ("id_test_relative_mse", POSITIVE),
        ("ood_composition_hit_rate", SHARE),
        ("layers/stage_0/cosine_factorization", SHARE),
    ],
)
def test_ranges_by_name(name: str, limits: Limits) -> None:
    assert find_limits(name) == limits


def test_declarations_and_figures_import_little() -> None:
    """SciPy's statistics and PDF's fonts take two seconds of every start."""
    script = (
        "import sys; from tfcomp.evaluation.metrics import list_metrics; "
        "assert list_metrics(); heavy = {'tensorflow', 'keras', 'matplotlib', "
        "'scipy.stats', 'scipy.optimize', 'fontTools.subset'}; "
        "assert not heavy & set(sys.modules); import tfcomp.figures.exhibits; "
        "assert 'fontTools.subset' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_declaration_is_whole() -> None:
    metrics = list_metrics()
    for metric in metrics:
        assert metric.label and metric.function
        assert metric.about or not (metric.chart or metric.of == "image")
        assert metric.of in ("image", "stage", "stages", "run")
        assert metric.limits.low < metric.limits.high
        assert metric.chart is None or metric.of in ("stage", "stages")
    assert len({m.label for m in metrics}) == len({m.name for m in metrics})
    for shown in list_charts().values():
        assert len(shown) <= 4  # panels of a figure


def test_a_metric_of_ones_own() -> None:
    @register_measure("sparsity", label="Sparsity", range=(0, 1), unit="%")
    def measure_sparsity(stage) -> float:
        """Share of units
        that are zero.

        More on it."""
        return float((stage.activations == 0).mean())

    found = find_metric("layers/stage_0/sparsity")
    assert found.about == "Share of units that are zero."
    assert (found.of, found.is_user) == ("stage", True)
    assert found.chart.axis == "Sparsity (%)"
    assert found in list_charts("layers")[found.chart]
    assert [m.name for m in list_metrics() if m.is_user] == ["sparsity"]


def test_runs_record_what_users_declare() -> None:
    """Other commands know its range without the code that computes it."""

    def compute(stage) -> float:
        return 1.0

    register = register_measure("gain", range=(0, math.inf), better="high")
    register(compute)
    recorded = describe_user_metrics()
    unregister_all()
    assert find_limits("layers/image/gain") == REAL
    adopt_metrics(recorded | {"mse": {}, "broken": {"per": 3}, "other": 3})
    assert find_limits("layers/image/gain") == POSITIVE
    assert find_metric("broken") is find_metric("other") is None
    assert find_limits("mse") == POSITIVE
    # Nothing computes it here; the plugin may still be imported.
    assert find_metric("gain").function is None
    assert not list_registered("stage")
    register(compute)
    adopt_metrics(recorded)
    assert find_metric("gain").function is compute


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("log_volume_sd", {}, "registered already"),
        ("Upper", {}, "small letters"),
        ("stages", {}, "another entry"),
        ("new", {"per": "run"}, "per must be stage or image"),
        ("new", {"better": "big"}, "better must be"),
        ("new", {"range": (0, math.nan)}, "low < high"),
        ("new", {"range": ("a", "b")}, "low < high"),
    ],
)
def test_mistakes_of_registration(name, settings: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        register_measure(name, **settings)(lambda stage: 0.0)
    assert "\n" not in str(caught.value) and find_metric("new") is None
