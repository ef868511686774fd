"""Training and evaluation on a file with the layout and size of dSprites.

    python -m benchmarks.table FOLDER

Writes FOLDER/dsprites.npz (compressed as the original is, unless it is there),
then tells the time from the command to the first step, the peak of memory and
the time of an evaluation, of a sample and of all points.
"""

from __future__ import annotations

import math
import resource
import sys
import time
import zipfile
from pathlib import Path

import numpy as np

START = time.perf_counter()
SIZES = (1, 3, 6, 40, 32, 32)
SIDE = 64
BLOCK = 32 * 32


def main() -> int:
    """Prints the figures of one process."""
    folder = Path(sys.argv[1])
    path = folder / "dsprites.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_dsprites(path)
        print(f"{path} is written: run the command again")
        return 0
    measure(path)
    return 0


def measure(path: Path) -> None:
    """One step of training, then both kinds of evaluation."""
    from tfcomp.config.run_flags import parse_config
    from tfcomp.models.config_checks import check_config

    flags = [
        *("--dataset=table", f"--data={path}", "--region=montero:range"),
        *("--model=mlp", "--width=256", "--encoding=ramp", "--batch_size=128"),
    ]
    config = parse_config(flags)
    check_config(config)
    say("checked, without TensorFlow")
    from tfcomp.datasets import make_dataset
    from tfcomp.datasets.batches import make_batches
    from tfcomp.metrics.run_analysis import RunAnalysis
    from tfcomp.models.stages import make_model
    from tfcomp.training.fit import compile_model

    dataset = make_dataset(config)
    dataset.prepare()
    say("images are read")
    model = make_model(config, dataset, "float32")
    compile_model(model, config.training, 1)
    for steps in (1, 100):
        batches = make_batches(dataset, 128, 0, num_steps=steps)
        model.fit(batches, verbose=0)
        say(f"{steps} step(s)")
    for points in (4096, 0):
        config = parse_config([*flags, f"--eval_points={points}"])
        analysis = RunAnalysis(model, make_dataset(config))
        start = time.perf_counter()
        scores = analysis.evaluation.scores
        seconds = time.perf_counter() - start
        say(f"--eval_points={points}: {seconds:.1f} s, {scores}")


def say(what: str) -> None:
    """Prints the time since the start, and the peak of memory."""
    seconds = time.perf_counter() - START
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    images = math.prod(SIZES) * SIDE**2
    print(
        f"{seconds:7.1f} s  {peak / 1e9:5.2f} GB ({peak / images:.2f} of the "
        f"images)  {what}",
        flush=True,
    )


def write_dsprites(path: Path) -> None:
    """Shapes as in dSprites: 0/1 images, classes and values, one pickle."""
    count = math.prod(SIZES)
    classes = np.stack(np.unravel_index(np.arange(count), SIZES), axis=1)
    steps = [1, 1, 5, 39, 31, 31]
    low, high = [1, 1, 0.5, 0, 0, 0], [1, 3, 1, 2 * np.pi, 1, 1]
    values = low + classes / steps * np.subtract(high, low)
    values[:, 1] = classes[:, 1] + 1
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, True, 1) as file:
        with file.open("imgs.npy", "w", force_zip64=True) as member:
            header = {
                "descr": "|u1",
                "fortran_order": False,
                "shape": (count, SIDE, SIDE),
            }
            np.lib.format.write_array_header_1_0(member, header)
            for start in range(0, count, BLOCK):
                rows = values[start : start + BLOCK]
                member.write(draw_block(rows).tobytes())
        others = {
            "latents_classes": classes,
            "latents_values": values,
            "metadata": np.array({"title": "stand-in"}, dtype=object),
        }
        for name, array in others.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array)
    partial.rename(path)


def draw_block(values: np.ndarray) -> np.ndarray:
    """All places of one shape at one scale and orientation, uint8 0/1."""
    _, shape, scale, angle, *_ = values[0]
    rows, columns = np.mgrid[-16:16, -16:16]
    u = np.cos(angle) * columns + np.sin(angle) * rows
    v = np.cos(angle) * rows - np.sin(angle) * columns
    if shape == 1:
        inside = np.maximum(abs(u), abs(v)) < 10 * scale
    else:
        inside = u**2 + (shape - 1) ** 2 * v**2 < (14 * scale) ** 2
    images = np.zeros((len(values), SIDE, SIDE), np.uint8)
    for image, (x, y) in zip(images, values[:, 4:], strict=True):
        left, top = round(31 * x), round(31 * y)
        image[top : top + 32, left : left + 32] = inside
    return images


if __name__ == "__main__":
    sys.exit(main())
