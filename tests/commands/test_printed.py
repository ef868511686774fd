"""What commands print of finished runs and sweeps."""

from pathlib import Path

import pytest

from tfcomp.config.run_flags import parse_config
from tfcomp.sweep import format_summary
from tfcomp.train import list_facts


def test_a_sweep_of_seeds_alone_has_a_heading(tmp_path: Path) -> None:
    text = "score,mean,sd,n\nood_relative_mse,0.25,0.5,3\n"
    (tmp_path / "summary.csv").write_text(text)
    heading, row = format_summary(tmp_path).splitlines()
    assert "ood_relative_mse" in heading
    assert "0.25 ± 0.5" in row


@pytest.mark.parametrize("r2", [0.0, 0.5])
def test_r2_of_zero_is_a_number(r2: float) -> None:
    metrics = {"r2": {"certified": r2, "others": 0.25}}
    facts = list_facts(parse_config([]), metrics)
    assert facts["R2"] == f"certified {r2:.2f}, others 0.25"
    assert list_facts(parse_config([]), {"r2": {"others": 0.25}})["R2"] == ""
