"""Flags that no part of a run reads are named, and no others."""

from collections.abc import Sequence

import pytest

from tests import own_factors  # which registers its data sets
from tests.datasets.own_tables import make_data
from tfcomp import train
from tfcomp.config.errors import RunError
from tfcomp.config.plugins import Entry
from tfcomp.config.run_config import ModelConfig, all_fields
from tfcomp.config.run_flags import (
    define_run_flags,
    parse_config,
    parse_flags,
)
from tfcomp.datasets.dataset import DATASETS
from tfcomp.models.registry import (
    ENCODINGS,
    MODELS,
    describe_unused,
    is_shipped,
)
from tfcomp.sweeps.grid import make_trials

LINE = "smoke --grid_size=8 --region=none --width=8 --depth=2"
SHIPPED = [
    name
    for name in MODELS.names()
    if MODELS.get(name).target.__module__.startswith("tfcomp.")
]


def describe(*flags: str, names: Sequence[str]) -> str:
    return describe_unused(parse_config(["smoke", *flags]), names)


def test_a_flag_of_another_model_is_named():
    flags = ("--groups=nope", "--rank=8", "--sigma=2")
    note = describe(*flags, names=["groups", "rank", "sigma", "seed"])
    assert "--groups=nope" in note
    assert "--rank=8" in note
    assert "sigma" not in note
    # What a flagfile holds for another model is nobody's mistake.
    assert not describe(*flags, names=["sigma", "seed"])
    assert not describe("--model=additive", names=["groups"])


def test_commands_print_it(monkeypatch, capsys):
    def stop(*arguments: object):
        raise RunError("a training would begin")

    monkeypatch.setattr(train, "run_training", stop)
    with pytest.raises(RunError, match="begin"):
        train.main(["train", "smoke", "--groups=nope"])
    assert "--groups=nope" in capsys.readouterr().out

    flags = ["--run_name=sweep", "--groups=nope"]
    values = parse_flags(flags, define_run_flags())
    _, notes = make_trials(values, [{"rank": 3}], [0])
    assert "--groups=nope" in str(notes)
    assert "--rank=3" in str(notes)


def test_parts_that_use_a_flag_exist():
    parts = {*MODELS.names(), *ENCODINGS.names(), *DATASETS.names()}
    for field in all_fields():
        assert parts.issuperset(field.metadata["used_by"])


def test_parts_of_users_may_read_any_flag():
    dataset = next(iter(own_factors.SPACES))
    assert not describe(f"--dataset={dataset}", names=["groups"])


def test_a_decoder_that_is_added_to_a_clone_may_read_any_flag(monkeypatch):
    def build(config: object, dataset: object):
        raise AssertionError("nothing is built")

    build.__module__ = "tfcomp.models.decoders.squares"
    monkeypatch.setitem(MODELS._entries, "squares", Entry(build))
    config = parse_config(["smoke", "--model=squares"])
    assert not is_shipped(config)
    assert not describe_unused(config, ["width"])
    assert is_shipped(parse_config(["smoke"]))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_model_reads_no_flag_that_is_named(name, monkeypatch):
    flags = [f"--model={name}", "--encoding=one_hot"]
    config = parse_config([*LINE.split(), *flags])
    dataset = make_data(LINE, *flags)
    read = set()
    find = object.__getattribute__

    def record(settings: ModelConfig, key: str) -> object:
        read.add(key)
        return find(settings, key)

    monkeypatch.setattr(ModelConfig, "__getattribute__", record)
    MODELS.get(name).load()(config, dataset)
    monkeypatch.undo()

    assert not describe_unused(config, read & {*config.model.to_flags()})
