"""The vocabulary that claims are declared in.

Most claims say that a number of some runs obeys a rule. `Number` is the number
with its rule; a test takes it from the runs of each of some settings
(`measure_each`), or from several settings at equal seeds (`compare`). A claim
that these cannot express has another function from evidence to judged parts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tfcomp.statistics.limits import Limits
from tfcomp.studies.claims import run_numbers
from tfcomp.studies.claims.evidence import Evidence, Run
from tfcomp.studies.claims.selection import Arms, Group, Setting
from tfcomp.studies.claims.verdict import Part, Rule, above, below

Test = Callable[[Evidence], list[Part]]


@dataclass(frozen=True)
class Number:
    """A number that a claim is about, and the rule that it is judged by.

    Attributes:
        quantity: What it is, with its unit.
        read: The name of a score or measure of a run; or a function of a run,
            or of the runs that are compared.
        name: Where runs have several: the label of its part ends with it.
        decides: Whether it counts for the claim or only supports it.
        limits: Its range; by default that of the score or measure.
        by: How the numbers of the seeds become one.
    """

    quantity: str
    read: run_numbers.Read | str
    rule: Rule
    name: str = ""
    decides: bool = True
    limits: Limits | None = None
    by: run_numbers.Estimator = run_numbers.estimate_mean


def make_trend(
    words: str, stages: run_numbers.PerStage, rule: Rule, end: int | None = None
) -> Number:
    """Page's test of a number net of the start, over stages up to an end."""
    read = run_numbers.list_stages(run_numbers.subtract_start(stages), end)
    quantity = f"{words} net of the start, rank correlation with the stage"
    return Number(quantity, read, rule, "trend", by=run_numbers.estimate_trend)


def make_share(words: str, rules: Mapping[str, Rule]) -> Number:
    """Share of the seeds whose scores obey rules, which is above one half."""

    def read(run: Run) -> bool | None:
        scores = [run.get(name) for name in rules]
        if None in scores:
            return None
        pairs = zip(scores, rules.values(), strict=True)
        return all(rule.is_met(score, score) for score, rule in pairs)

    return Number(
        f"seeds with {words}", read, above(0.5), by=run_numbers.estimate_share
    )


@dataclass(frozen=True)
class Gate:
    """What training must have reached: an unfitted network proves nothing.

    `name` is a score of trained (ID) combinations. A run that has not reached
    it is left out, and counted.
    """

    name: str
    rule: Rule

    def select(self, group: Group) -> tuple[Group, str]:
        """The runs of a group that have a say; how many, unless all have."""
        fitted = [
            run
            for run in group.runs
            if (score := run.get(f"id/{self.name}")) is not None
            and self.rule.is_met(score, score)
        ]
        words = []
        if len(fitted) < len(group.runs):
            words.append(f"{len(fitted)} of {len(group.runs)} fitted")
        if again := sum(run.num_trainings > 1 for run in fitted):
            words.append(f"{again} started again")
        return replace(group, runs=tuple(fitted)), ", ".join(words)


# A blank image has a relative MSE of 1.
FITTED = Gate("relative_mse", below(0.05))
# From stripes alone a network draws a plus and not a bump: its error on bumps
# is large however well it is trained.
PLACED = Gate("position_accuracy", above(0.95))


def select_fitted(group: Group) -> Group:
    """The fitted runs of a group: on stripes, those with peaks in place."""
    striped = "stripes" in group.runs[0].flags["dataset"]
    return (PLACED if striped else FITTED).select(group)[0]


def measure(
    label: str,
    groups: Sequence[Group],
    numbers: Sequence[Number],
    gates: Sequence[Gate] = (),
    problem: str = "",
    *,
    decides: bool = True,
) -> list[Part]:
    """Judges numbers of the same runs, a part for each number.

    Args:
        groups: The runs; several groups if they are compared.
        gates: One for all groups, or one for each; none for any run.
        problem: Why the runs prove nothing, though they pass their gates.
        decides: Whether the numbers that decide do so for these runs.
    """
    num_runs = min(len(group.runs) for group in groups)
    notes = []
    if gates:
        each = [*gates] * (len(groups) if len(gates) == 1 else 1)
        pairs = zip(groups, each, strict=True)
        chosen = [gate.select(group) for group, gate in pairs]
        groups = [group for group, _ in chosen]
        notes = [note for _, note in chosen if note]
    is_run = any(note.startswith("0 of") for note in notes)
    if is_run:
        problem = f"not fitted: {', '.join(notes)}"
    return [
        Part(
            f"{label}, {number.name}" if number.name else label,
            number.quantity,
            run_numbers.estimate(
                number.read, *groups, by=number.by, limits=number.limits
            ),
            number.rule,
            groups,
            fitted=", ".join(notes),
            problem=problem,
            is_run=is_run,
            decides=decides and number.decides,
            of=label,
            num_runs=num_runs,
        )
        for number in numbers
    ]


def measure_each(
    settings: Mapping[str, Setting],
    *numbers: Number,
    gates: Sequence[Gate] = (FITTED,),
) -> Test:
    """A test: numbers of the runs of every setting, by its label."""

    def test(evidence: Evidence) -> list[Part]:
        return [
            part
            for label, setting in settings.items()
            for part in measure(label, [setting.find(evidence)], numbers, gates)
        ]

    return test


def compare(
    label: str,
    arms: Arms,
    names: Sequence[str],
    *numbers: Number,
    gates: Sequence[Gate] = (FITTED,),
) -> Test:
    """A test: numbers of some arms, seed by seed; all arms are alike else."""

    def test(evidence: Evidence) -> list[Part]:
        found = arms.find(evidence)
        first, *others = groups = [found[name] for name in names]
        problems = [arms.find_mismatch(first, other) for other in others]
        problem = next(filter(None, problems), "")
        return measure(label, groups, numbers, gates, problem)

    return test
