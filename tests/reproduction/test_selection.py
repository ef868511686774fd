"""Selection of runs: grouping, preference, refusals to mix."""

from reproduction.groups import Group, Record, group_records
from reproduction.selection import Arms, Setting, read_setting, region_is

DONUT = Setting(
    "donut.flags",
    {"model": "cnn", "encoding": "bump", "region": region_is("square")},
)


def make(
    seeds: int,
    *flags: str,
    relative: float = 0.5,
    file: str = "donut.flags",
    first: int = 0,
) -> list[Record]:
    """Runs with consecutive seeds and further flags."""
    setting = read_setting(" ".join([file, *flags]))
    metrics = {"ood": {"relative_mse": relative}}
    return [
        Record(setting | {"seed": first + n}, metrics) for n in range(seeds)
    ]


def gather(*runs: list[Record]) -> list[Group]:
    return group_records(record for group in runs for record in group)


def find(*runs: list[Record]) -> Group:
    return DONUT.find(gather(*runs))


def is_made_of(group: Group, records: list[Record]) -> bool:
    """Returns True if a group has the seeds and flags of some runs."""
    (other,) = gather(records)
    return group.flags == other.flags and group.seeds == other.seeds


def test_order_of_preference() -> None:
    near, far = make(3), make(5, "--epochs=49", "--depth=6")
    # Enough seeds: the published setting, though others have more.
    assert is_made_of(find(far, near), near)
    assert find(near, far).differences == ()
    # Too few seeds decide nothing: the other setting, and it says so.
    few = find(make(2), far)
    assert is_made_of(few, far)
    assert set(few.differences) == {"epochs=49", "depth=6"}
    assert few.others == ("depth=4, epochs=50 (2 seeds)",)
    # Equally near: more seeds.
    more = make(5, "--epochs=49")
    assert is_made_of(find(make(4, "--epochs=48"), more), more)


def test_preference_does_not_look_at_results() -> None:
    for good, bad in ((0.9, 0.1), (0.1, 0.9)):
        group = find(
            make(3, "--epochs=49", relative=good),
            make(3, "--epochs=48", relative=bad),
        )
        assert group.differences == ("epochs=49",)


def test_only_matching_runs() -> None:
    corner, ramp = (make(3, file=f"{n}.flags") for n in ("corner", "ramp"))
    assert len(find(corner, ramp)) == 0
    other = make(3, "--region=square:8-20")
    assert find(corner, ramp, other).differences == ("region=square:8-20",)
    # Flags of bookkeeping do not split a setting.
    runs = make(2, "--eval_every=7") + make(2, first=2)
    assert find(runs).seeds == [0, 1, 2, 3]


def test_arms_without_a_run_that_counts() -> None:
    """All runs of a setting may be too bad to be judged."""
    (group,) = gather(make(2))
    found = Arms({"bump": DONUT}, ["encoding"]).find([group.keep([])])
    assert len(found["bump"]) == 0


def test_numbers_of_a_group_by_seed() -> None:
    flags = read_setting("donut.flags")
    stages = {"code": {"f": 1.0}, "image": {"f": None}}
    first, second = (
        Record(flags | {"seed": 7}, {"ood": {"mse": 0.2}, "layers": stages}),
        Record(flags | {"seed": 3}, {"ood": {"mse": 0.4}}),
    )
    (group,) = group_records([first, second])
    assert group.get("ood/mse").to_dict() == {3: 0.4, 7: 0.2}
    assert group.get("ood/nothing").isna().all()
    table = group.get_stages("f")
    assert list(table) == ["code", "image"]
    assert table.loc[7, "code"] == 1.0 and table.notna().sum().sum() == 1
    assert len(Group().get("ood/mse")) == 0


def test_untrained_networks_have_the_numbers_of_the_start() -> None:
    measures = {
        "stages": ["code", "image"],
        "f": [1.0, 0.5],
        "start": {"f": [0.9, 0.8]},
    }
    metrics = {"id": {"mse": 0.1}, "ood": {"mse": 0.2}}
    flags = read_setting("donut.flags")
    (group,) = group_records([Record(flags | {"seed": 0}, metrics, measures)])
    start = group.untrain()
    for when in ("start", "end"):
        assert start.get_stages("f", when).iloc[0].tolist() == [0.9, 0.8]
    assert start.get("id/mse")[0] == 0.1  # it says whether the run counts
    assert start.get("ood/mse").isna().all()
    assert group.get_stages("f").iloc[0].tolist() == [1.0, 0.5]
