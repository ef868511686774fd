"""The cases that claims judge, by the names that `claims.toml` gives them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, product

from tfcomp.studies.claims import settings
from tfcomp.studies.claims.claim import Case, Runs
from tfcomp.studies.claims.evidence import Evidence
from tfcomp.tables.groups import Group
from tfcomp.tables.selection import Arms, Setting, find_series, has_enough

PENALTIES = tuple(settings.PENALTIES)
DEPTHS = (2, 3, 4, 5, 6)
NUMBERS = (0, 10, 50, 100)  # of bumps beside stripes
# The first decides: epochs, and steps of one.
LENGTHS = {"1,000 steps": (25, 40), "3,150 steps": (50, 63)}
# The authors' 1,260 steps are too short for MLPs to fit.
AUTHORS_LENGTH = {"epochs": 20, "steps_per_epoch": 63}


def is_full_length(epochs: int) -> bool:
    """Returns True unless trained for the authors' length."""
    return epochs != AUTHORS_LENGTH["epochs"]


# Volumes spread as training goes on, so that bumps alone and stripes with bumps
# must be trained for as many steps.
CORNER = Arms(
    {
        "bumps only": settings.make_cnn("bump", "corner:14"),
        "stripes and bumps": settings.STRIPED.require(num_bumps=50),
    },
    free=("dataset", "num_bumps", "epochs", "steps_per_epoch"),
    equal_steps=True,
)


def _compare(
    evidence: Evidence, arms: Arms, cases: Mapping[str, Sequence[str]]
) -> Iterator[Case]:
    """Yields arms that are compared seed by seed, all alike else."""
    found = arms.find(evidence.groups)
    for label, names in cases.items():
        first, *others = groups = [found[name] for name in names]
        problems = [arms.find_mismatch(first, other) for other in others]
        yield Case(label, groups, next(filter(None, problems), ""))


def _compare_penalties(
    cases: Mapping[str, Sequence[str]], *names: str
) -> Callable[[Evidence], Iterator[Case]]:
    """Compares low-rank networks that differ in their penalties alone."""
    free = ("entropy_weight", "variance_weight", "penalty_basis")
    arms = {name: settings.make_low_rank(name) for name in names or PENALTIES}
    return partial(_compare, arms=Arms(arms, free), cases=cases)


def _list_pairs(*pairs: tuple[str, str]) -> dict[str, tuple[str, str]]:
    return {
        f"{worse} over {better}": (worse, better) for worse, better in pairs
    }


def _list_depths(evidence: Evidence) -> Iterator[Case]:
    """Yields CNNs that differ in depth alone, which decide, then others."""
    for code in settings.MAIN_CODES:
        setting = settings.make_cnn(code)
        any_depth = setting.require(depth=DEPTHS.__contains__)
        base = any_depth.find(evidence.groups)
        must = {**any_depth.must, **base.flags, "depth": DEPTHS.__contains__}
        same = Setting(any_depth.flagfile, must)
        alike = find_series(evidence.groups, same, "depth") or {4: Group()}
        for depth, group in alike.items():
            yield Case(f"{code}, depth {depth}", [group])
        for depth in set(DEPTHS).difference(alike):
            group = setting.require(depth=depth).find(evidence.groups)
            if len(group):
                label = f"{code}, depth {depth}, beside the others"
                yield Case(label, [group], decides=False)


def _list_shallow_and_deep(evidence: Evidence) -> Iterator[Case]:
    """Yields a shallow and the deepest network with enough seeds, by code."""
    shallow, deep = min(DEPTHS), max(DEPTHS)
    for code in ("ramp", "bump"):
        groups = find_series(
            evidence.groups, settings.make_cnn(code), "depth", (shallow, deep)
        )
        first = groups.pop(shallow, Group())
        enough = [depth for depth, g in groups.items() if has_enough(g)]
        depth = deep if deep in enough else max(enough or groups, default=deep)
        label = f"{code}, depth {shallow} less depth {depth}"
        pair = [first, groups.get(depth, Group())]
        yield Case(label, pair, decides=code == "ramp")


def _find_counts(evidence: Evidence, length: str, shown: slice) -> list[Case]:
    """Returns networks that differ in their number of bumps alone."""
    epochs, steps = LENGTHS[length]
    setting = settings.STRIPED.require(epochs=epochs, steps_per_epoch=steps)
    found = find_series(evidence.groups, setting, "num_bumps", NUMBERS)
    groups = [found.get(count, Group()) for count in NUMBERS]
    pairs = zip(NUMBERS, groups, strict=True)
    missing = ", ".join(str(n) for n, group in pairs if not len(group))
    problem = f"no run with {missing} bumps" if missing else ""
    return [Case(length, groups[shown], problem, length == "1,000 steps")]


def _list_counts(evidence: Evidence) -> list[Case]:
    """Returns the networks of every number of bumps."""
    series = find_series(evidence.groups, settings.STRIPED, "num_bumps")
    series = series or {50: Group()}
    return [Case(f"stripes and {n} bumps", [g]) for n, g in series.items()]


def _find_digit(evidence: Evidence) -> list[Case]:
    """Returns the rotated digit; the label says which gap it is."""
    group = settings.ROTATED.find(evidence.groups)
    region = f", {group.flags['region']}" if len(group) else ""
    return [Case(f"rotated digit{region}", [group])]


RUNS: dict[str, Runs] = {
    "bump donut": {"donut, bump": settings.make_cnn("bump")},
    "donuts": {
        f"donut, {code}": settings.make_cnn(code)
        for code in settings.MAIN_CODES
    },
    "all donuts": {
        f"donut, {code}": settings.make_cnn(code)
        for code in settings.CODE_FLAGFILES
    },
    "MLPs": {
        f"MLP, {code}": settings.make_mlp(code).require(epochs=is_full_length)
        for code in settings.MAIN_CODES
    },
    "depths": _list_depths,
    "shallow and deep": _list_shallow_and_deep,
    "both penalties": {
        f"{region}, both penalties": settings.decay("both", region)
        for region in settings.HELD_OUT
    },
    "one penalty": {
        f"{name} alone": settings.decay(name)
        for name in ("entropy", "variance")
    },
    "corner, both penalties": {"both": settings.decay("both")},
    "order of penalties": _compare_penalties({"the order": PENALTIES}),
    "steps of penalties": _compare_penalties(_list_pairs(*pairwise(PENALTIES))),
    "costs of penalties": _compare_penalties(
        _list_pairs(*product(PENALTIES[1:], ["none"]), ("variance", "both"))
    ),
    "none and both": _compare_penalties(
        {"corner, none less both": ("none", "both")}, "none", "both"
    ),
    "stripes alone": {"stripes only, bump": settings.STRIPES},
    "numbers of bumps": _list_counts,
    "corner": partial(
        _compare,
        arms=CORNER,
        cases={"corner, bumps only less stripes and bumps": [*CORNER.settings]},
    ),
    "rotated digit": _find_digit,
    "hard rendering, axes given": settings.GIVEN,
    "hard rendering, axes found": settings.FOUND,
    **{
        f"{length}{words}": partial(_find_counts, length=length, shown=shown)
        for length in LENGTHS
        for words, shown in {
            "": slice(None),
            ", last two": slice(-1, -3, -1),  # most, then fewer
            ", last": slice(-1, None),
        }.items()
    },
}
