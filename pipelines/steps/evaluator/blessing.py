"""The verdict on a candidate: what was checked, and whether it is blessed."""

from __future__ import annotations

import json
from dataclasses import asdict
from dataclasses import dataclass
from dataclasses import field
from pathlib import Path
from typing import Any

from pipelines.steps.evaluator.candidates import TrialRow
from tfcomp.storage.files import write_text


@dataclass(frozen=True)
class Check:
    """One rule and what came of it.

    Attributes:
        score: The score.
        rule: What must hold, in words.
        value: The mean over seeds, or the candidate's score.
        half_width: Half of the 95 % interval of a mean; None otherwise, and
            for one seed.
        count: Number of seeds.
        passed: Whether it holds.
    """

    score: str
    rule: str
    value: float | None
    half_width: float | None
    count: int
    passed: bool

    def __str__(self) -> str:
        value = "missing" if self.value is None else f"{self.value:.4g}"
        spread = f" ± {self.half_width:.2g}" if self.half_width else ""
        word = "is" if self.passed else "must be"
        return f"{self.score} {value}{spread} {word} {self.rule}"


@dataclass(frozen=True)
class Evaluation:
    """The verdict of the evaluator.

    Attributes:
        candidate: The trial, None if there is none to choose.
        checks: The thresholds.
        reasons: Why it is not blessed; empty if it is.
        compared: Comparisons with the model that was pushed before; none if
            it is the candidate itself.
        run: Run folder of the candidate, from where the trainer wrote.
        pushed: Folder of the version that it was compared with, if any.
    """

    candidate: TrialRow | None
    checks: list[Check]
    reasons: list[str]
    compared: list[Check] = field(default_factory=list)
    run: str = ""
    pushed: str = ""

    @property
    def blessed(self) -> bool:
        """Whether the candidate may be pushed."""
        return not self.reasons

    def describe(self) -> str:
        """The verdict in one line."""
        if not self.blessed:
            return "not blessed: " + "; ".join(self.reasons)
        scores = ", ".join(map(str, self.checks))
        line = f"blessed {self.candidate.name}: {scores}"
        compared = f"; not worse than {self.pushed}" if self.pushed else ""
        return line + compared

    def list_numbers(self) -> dict[str, float]:
        """The scores over seeds, and 1 for blessed."""
        numbers = {"blessed": float(self.blessed)}
        for check in self.checks:
            if check.value is not None:
                numbers[check.score] = check.value
        return numbers

    def write(self, path: Path) -> None:
        """Writes `evaluation.json`."""
        content: dict[str, Any] = {"blessed": self.blessed, **asdict(self)}
        if self.candidate:
            content["candidate"]["setting"] = dict(self.candidate.setting)
            content["candidate"]["run"] = self.run
        write_text(path, json.dumps(content, indent=2) + "\n")
