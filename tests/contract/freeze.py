"""Writes down what may not change by accident, so that two states compare.

    python tests/contract/freeze.py FOLDER                # names, flags, files
    python tests/contract/freeze.py FOLDER --trainings    # and bits, 6 minutes
    diff -r FOLDER OTHER_FOLDER

`claims.csv` has every number of the paper's claims as the committed evidence
gives it, `names.txt` the public names with their signatures, `flags.txt` the
flags of each command with their defaults, `files.txt` the files and TensorBoard
tags of a run. `bits.csv` has every number of short trainings to the last bit:
it depends on the processor, so compare it with another one of the same machine.
`tests/contract/frozen` has the files that do not depend on the machine, and in
`claims.csv` those numbers of version 4 of the claims that must stay;
`test_contract.py` compares this checkout with them.
"""

import argparse
import contextlib
import csv
import hashlib
import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
SPRITES = "--sprite_sizes=3,2,4,4,4 --region=shape:heart,x:2-3"
# A short training of each kind of network: name, flagfile and more flags.
TRAININGS = {
    "smoke": "smoke",
    "donut": "donut --epochs=2 --steps_per_epoch=20 --num_train=256",
    "low_rank": "low_rank --epochs=4",
    "hard_rendering": "hard_rendering --epochs=4",
    "stripes": "stripes --epochs=2 --steps_per_epoch=20",
    "acting": f"acting --epochs=2 --id_target=0 {SPRITES}",
    "rotated_digits": "rotated_digits --epochs=2 --steps_per_epoch=20",
}
COMMANDS = ("train", "analyze", "compare", "sweep", "solvable")
SECONDS = ("seconds", "examples_per_second")  # numbers that depend on the day


def list_names() -> Iterator[str]:
    """Yields each public name of `tfcomp` with its signature."""
    import tfcomp

    for name in tfcomp.__all__:
        thing = getattr(tfcomp, name)
        try:
            yield f"{name}{inspect.signature(thing)}"
        except (TypeError, ValueError):
            yield name


def list_flags() -> Iterator[str]:
    """Yields each flag of each command with its default."""
    for command in COMMANDS:
        module = importlib.import_module(f"tfcomp.{command}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            module.main([command, "--helpfull"])
        text = printed.getvalue()
        for line in re.findall(r"^  (--\w+=.*)", text, re.MULTILINE):
            yield f"{command} {line}"


def list_files(folder: Path) -> Iterator[str]:
    """Yields the files that a run wrote, and the tags of its events."""
    from tensorboard.backend.event_processing import event_accumulator

    names = set()
    for path in folder.rglob("*"):
        if path.is_file():
            name = str(path.relative_to(folder))
            name = re.sub(r"tfevents\..*", "tfevents.*", name)
            # A slow machine saves more checkpoints.
            names.add(re.sub(r"ckpt-\d+", "ckpt-*", name))
    yield from sorted(names)
    for path in sorted(folder.glob("logs/*/")):
        events = event_accumulator.EventAccumulator(str(path))
        events.Reload()
        tags = events.Tags()
        for kind in ("tensors", "images"):
            yield from sorted(f"{kind} {tag}" for tag in tags[kind])


def run_command(*arguments: str) -> str:
    """Runs `tfcomp` of this checkout; returns what it prints."""
    environment = os.environ | {"PYTHONPATH": str(TOP)}
    data = TOP.parent / "shared" / "tensorflow_datasets"
    if data.is_dir():
        environment.setdefault("TFDS_DATA_DIR", str(data))
    result = subprocess.run(
        [sys.executable, "-m", "tfcomp", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


def train(name: str, arguments: str, folder: Path):
    """Trains one network into a folder, unless it is there already."""
    if (folder / "logs" / name / "metrics.json").exists():
        return
    run_command(
        "train",
        *arguments.split(),
        f"--run_name={name}",
        f"--log_dir={folder}/logs",
        f"--export_dir={folder}/models",
    )


def list_numbers(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the path and exact text of each number in nested JSON."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from list_numbers(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from list_numbers(inner, f"{path}/{place}")
    elif path.rpartition("/")[2] not in SECONDS:
        yield path, repr(value)


def list_bits(run: Path) -> Iterator[tuple[str, str, str]]:
    """Yields the numbers and the hash of the weights of a finished run."""
    with zipfile.ZipFile(run / "model.keras") as archive:
        weights = archive.read("model.weights.h5")
    yield run.name, "weights", hashlib.sha256(weights).hexdigest()
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    for path, text in list_numbers(metrics):
        if not path.startswith("/measures"):
            yield run.name, path, text


def judge_claims(folder: Path):
    """Writes the numbers of all claims, as the evidence gives them."""
    judge = ["reproduction.claims", "--runs=reproduction/evidence"]
    subprocess.run(
        [sys.executable, "-m", *judge, f"--output={folder}"],
        cwd=TOP,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def main():
    """Writes the files into the folder of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trainings", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    work = folder.with_name(f"{folder.name}_runs")
    folder.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    sys.path.insert(0, str(TOP))

    judge_claims(work)
    (work / "claims.csv").replace(folder / "claims.csv")
    train("smoke", "smoke", work / "smoke")
    for name, lines in {
        "names.txt": list_names(),
        "flags.txt": list_flags(),
        "files.txt": list_files(work / "smoke"),
    }.items():
        (folder / name).write_text("\n".join([*lines, ""]), "utf-8")

    if arguments.trainings:
        rows = []
        for name, flags in TRAININGS.items():
            train(name, flags, work / name)
            rows += list_bits(work / name / "logs" / name)
        with open(folder / "bits.csv", "w", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
