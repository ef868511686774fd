"""A training step of each decoder over the bare operations that it needs.

    python -m benchmarks.decoders [--models=kim,slots] [--batch_size=64]

At 28 x 28, with a bump code, width 64 and depth 4. The bare step is the same
network written in operations of TensorFlow on plain variables, its gradient by
a tape, and AdamW by its equations; both have the same number of weights, which
is checked. The two take turns within a run; the least time of many calls is
reported, on one thread. Goal: at most 1.5. Batches of `transformer` have
`--tokens_batch_size` examples: its memory grows with the square of the number
of pixels.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from benchmarks.low_rank import repeat_in_graph
from tfcomp.config.machine import keep_freed_memory
from tfcomp.config.run_flags import parse_config
from tfcomp.datasets import make_dataset
from tfcomp.models.initial_model import make_model
from tfcomp.models.pixels import make_coordinates, make_sinusoids
from tfcomp.training.fit import compile_model

SIDE, WIDTH, DEPTH, RANK, HEADS = 28, 64, 4, 32, 4
GOAL = 1.5
RATE, DECAY, BETAS, EPSILON = 1e-3, 1e-4, (0.9, 0.999), 1e-7


class Weights:
    """Plain variables by name, made when they are first asked for."""

    def __init__(self) -> None:
        self.known: dict[str, tf.Variable] = {}

    def get(self, name: str, shape: tuple) -> tf.Variable:
        """The variable of this name, drawn with the fan-in of its shape."""
        if name not in self.known:
            scale = math.prod(shape[:-1]) ** -0.5
            self.known[name] = tf.Variable(tf.random.normal(shape) * scale)
        return self.known[name]

    def dense(self, name: str, x: tf.Tensor, units: int) -> tf.Tensor:
        """A linear layer of the last axis."""
        kernel = self.get(name, (x.shape[-1], units))
        flat = tf.matmul(tf.reshape(x, (-1, x.shape[-1])), kernel)
        flat = tf.nn.bias_add(flat, self.get(f"{name}_bias", (units,)))
        return tf.reshape(flat, (-1, *x.shape[1:-1], units))

    def convolve(self, name: str, x: tf.Tensor, units: int) -> tf.Tensor:
        """A convolution of kernel 3 that keeps the size."""
        kernel = self.get(name, (3, 3, x.shape[-1], units))
        bias = self.get(f"{name}_bias", (units,))
        return tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias)

    def double(self, name: str, x: tf.Tensor, units: int) -> tf.Tensor:
        """A transposed convolution of kernel 4 and stride 2."""
        kernel = self.get(name, (4, 4, units, x.shape[-1]))
        count, rows, columns, _ = x.shape
        shape = (count, 2 * rows, 2 * columns, units)
        drawn = tf.nn.conv2d_transpose(x, kernel, shape, 2)
        return tf.nn.bias_add(drawn, self.get(f"{name}_bias", (units,)))

    def normalize(self, name: str, x: tf.Tensor) -> tf.Tensor:
        """Layer normalization of the last axis."""
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        scale = self.get(f"{name}_scale", (x.shape[-1],))
        shift = self.get(f"{name}_shift", (x.shape[-1],))
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + shift


def draw_doubled(w: Weights, codes: list, first: int) -> tf.Tensor:
    """`burgess` and `kim`."""
    x = tf.nn.relu(w.dense("fc", tf.concat(codes, 1), 4 * WIDTH))
    x = tf.nn.relu(w.dense("map", x, 16 * first))
    x = tf.reshape(x, (-1, 4, 4, first))
    for index, units in enumerate((first, WIDTH // 2)):
        x = tf.nn.relu(w.double(f"up{index}", x, units))
    return w.double("image", x, 1)[:, 2:-2, 2:-2]


def draw_broadcast(w: Weights, codes: list) -> tf.Tensor:
    """`broadcast`: what is constant along an axis is not multiplied again."""
    code = tf.matmul(tf.concat(codes, 1), w.get("code", (2 * SIDE, WIDTH)))
    places = w.dense("places", tf.constant(make_coordinates(SIDE, SIDE)), WIDTH)
    x = tf.nn.relu(code[:, None, None] + places)
    for index in range(DEPTH):
        x = tf.nn.relu(w.convolve(f"conv{index}", x, WIDTH))
    return w.convolve("image", x, 1)


def draw_coordinate(w: Weights, codes: list) -> tf.Tensor:
    """`coordinate`."""
    code = w.dense("project", tf.concat(codes, 1), WIDTH)
    kernel = w.get("dense0", (WIDTH, WIDTH))
    table = tf.constant(make_sinusoids(SIDE, SIDE, WIDTH))
    flat = tf.matmul(tf.reshape(table, (-1, WIDTH)), kernel)
    places = tf.reshape(flat, table.shape)
    places += w.get("dense0_bias", (WIDTH,))
    x = tf.matmul(code, kernel)[:, None, None] + places
    for index in range(DEPTH):
        x = w.dense(f"dense{index}", x, WIDTH) if index else x
        slope = w.get(f"slope{index}", (1, 1, 1))
        x = tf.nn.relu(x) - slope * tf.nn.relu(-x)
    return w.dense("image", x, 1)


def draw_transformer(w: Weights, codes: list) -> tf.Tensor:
    """`transformer`."""
    count, size = SIDE**2, WIDTH // HEADS
    shape = (-1, count, HEADS, size)
    table = make_sinusoids(SIDE, SIDE, WIDTH).reshape(count, WIDTH)
    x = w.dense("project", tf.concat(codes, 1), WIDTH)[:, None] + table
    for i in range(DEPTH):
        parts = [w.dense(f"{part}{i}", x, WIDTH) for part in "qkv"]
        query, key, value = (
            tf.transpose(tf.reshape(part, shape), (0, 2, 1, 3))
            for part in parts
        )
        scores = tf.matmul(query * size**-0.5, key, transpose_b=True)
        seen = tf.transpose(tf.nn.softmax(scores) @ value, (0, 2, 1, 3))
        seen = tf.reshape(seen, (-1, count, WIDTH))
        x = w.normalize(f"a{i}", x + w.dense(f"output{i}", seen, WIDTH))
        fed = tf.nn.relu(w.dense(f"up{i}", x, 4 * WIDTH))
        x = w.normalize(f"b{i}", x + w.dense(f"down{i}", fed, WIDTH))
    return tf.reshape(w.dense("image", x, 1), (-1, SIDE, SIDE, 1))


def draw_film(w: Weights, codes: list) -> tf.Tensor:
    """`film`."""
    code = tf.concat(codes, 1)
    x = tf.constant(make_sinusoids(SIDE, SIDE, WIDTH)[None])
    for index in range(DEPTH):
        x = w.convolve(f"conv{index}", x, WIDTH)
        film = w.dense(f"film{index}", code, 2 * WIDTH)[:, None, None]
        x = tf.nn.relu((1.0 + film[..., :WIDTH]) * x + film[..., WIDTH:])
    return w.dense("image", x, 1)


def draw_attention(w: Weights, codes: list) -> tf.Tensor:
    """`attention`, with all products of weights on the side of the tokens."""
    size, count = WIDTH // HEADS, SIDE**2
    tokens = [w.dense(f"t{i}", code, WIDTH) for i, code in enumerate(codes)]
    tokens = tf.stack(tokens, axis=1)  # [n, K, w]
    query, key, value, output = (
        w.get(name, (HEADS, WIDTH, size)) for name in "qkvo"
    )
    keys = tf.einsum("njc,hcd->njhd", tokens, key)
    keys = tf.einsum("njhd,hcd->nhjc", keys, query)
    values = tf.einsum("njc,hcd->njhd", tokens, value)
    values = tf.einsum("njhd,hcd->nhjc", values, output)
    table = make_sinusoids(SIDE, SIDE, WIDTH).reshape(count, WIDTH)
    flat = (-1, HEADS * len(codes), WIDTH)
    scores = tf.einsum("pc,nkc->npk", table, tf.reshape(keys, flat))
    scores = tf.reshape(scores * size**-0.5, (-1, count, HEADS, len(codes)))
    shares = tf.reshape(tf.nn.softmax(scores), (-1, count, flat[1]))
    x = table + tf.matmul(shares, tf.reshape(values, flat))
    for index in range(DEPTH):
        x = tf.nn.relu(w.dense(f"dense{index}", x, WIDTH))
    return tf.reshape(w.dense("image", x, 1), (-1, SIDE, SIDE, 1))


def draw_branches(
    w: Weights, codes: list, depth: int, masks: int = 0
) -> list[tf.Tensor]:
    """What the branches of a composed decoder draw, then so many masks."""
    parts, hidden = [], []
    for k, x in enumerate(codes):
        for index in range(DEPTH):
            x = tf.nn.relu(w.dense(f"dense{k}_{index}", x, WIDTH))
        hidden.append(x)
        parts.append(w.dense(f"drawn{k}", x, SIDE**2 * depth))
    parts += [
        w.dense(f"mask{k}", x, SIDE**2) for k, x in enumerate(hidden[:masks])
    ]
    return [tf.reshape(part, (-1, SIDE, SIDE, depth)) for part in parts]


def draw_slots(w: Weights, codes: list) -> tf.Tensor:
    """`slots` of two objects, whose softmax is a sigmoid."""
    a, b, *masks = draw_branches(w, codes, 1, masks=2)
    share = tf.sigmoid(masks[0] - masks[1])
    return share * a + (1.0 - share) * b


def draw_occlusion(w: Weights, codes: list) -> tf.Tensor:
    """`occlusion`."""
    a, b, mask = draw_branches(w, codes, 1, masks=1)
    share = tf.sigmoid(mask)
    return share * a + (1.0 - share) * b


def draw_additive(w: Weights, codes: list) -> tf.Tensor:
    """`additive`."""
    return tf.add(*draw_branches(w, codes, 1))


def draw_product(w: Weights, codes: list, rank: int) -> tf.Tensor:
    """`product` and `low_rank_product`."""
    terms = tf.multiply(*draw_branches(w, codes, rank))
    return tf.reduce_sum(terms, axis=-1, keepdims=True) if rank > 1 else terms


DRAW: dict[str, Callable] = {
    "burgess": lambda w, codes: draw_doubled(w, codes, WIDTH // 2),
    "kim": lambda w, codes: draw_doubled(w, codes, WIDTH),
    "broadcast": draw_broadcast,
    "coordinate": draw_coordinate,
    "transformer": draw_transformer,
    "film": draw_film,
    "attention": draw_attention,
    "additive": draw_additive,
    "product": lambda w, codes: draw_product(w, codes, 1),
    "low_rank_product": lambda w, codes: draw_product(w, codes, RANK),
    "occlusion": draw_occlusion,
    "slots": draw_slots,
}


def make_bare_step(
    name: str, factors: tf.Tensor, images: tf.Tensor
) -> tuple[Callable[[], tf.Tensor], int]:
    """A step of plain operations, and its number of weights."""
    weights, values = Weights(), tf.range(SIDE, dtype=tf.float32)

    def draw() -> tf.Tensor:
        codes = tf.exp(-0.5 * (factors[..., None] - values) ** 2)  # [n, 2, 28]
        return DRAW[name](weights, tf.unstack(codes, axis=1))

    draw()  # makes the variables
    variables = list(weights.known.values())
    first = [tf.Variable(tf.zeros_like(v)) for v in variables]
    second = [tf.Variable(tf.zeros_like(v)) for v in variables]
    step = tf.Variable(0.0)

    def train() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(draw() - images))
        gradients = tape.gradient(loss, variables)
        t = step.assign_add(1.0)
        rate = RATE * tf.sqrt(1.0 - BETAS[1] ** t) / (1.0 - BETAS[0] ** t)
        for v, m, s, g in zip(variables, first, second, gradients, strict=True):
            m.assign_add((1.0 - BETAS[0]) * (g - m))
            s.assign_add((1.0 - BETAS[1]) * (tf.square(g) - s))
            change = rate * m / (tf.sqrt(s) + EPSILON) + RATE * DECAY * v
            v.assign_sub(change)
        return loss

    return train, sum(math.prod(v.shape) for v in variables)


def make_step(
    name: str, factors: tf.Tensor, images: tf.Tensor
) -> tuple[Callable[[], tf.Tensor], int]:
    """A step of the decoder as Keras trains it, and its number of weights."""
    config = parse_config([f"--model={name}", "--weight_decay=1e-4"])
    model = make_model(config, make_dataset(config), "float32")
    compile_model(model, config.training, 1)
    step = model.train_step
    step((factors, images))  # makes the metrics
    return lambda: step((factors, images))["loss"], model.count_params()


def compare(name: str, batch: int, repeats: int, steps: int) -> float:
    """Prints the time of both steps; returns their ratio."""
    rng = np.random.default_rng(0)
    factors = tf.constant(rng.uniform(0, SIDE, (batch, 2)), tf.float32)
    images = tf.constant(rng.uniform(size=(batch, SIDE, SIDE, 1)), tf.float32)
    (bare, count), (step, weights) = (
        make(name, factors, images) for make in (make_bare_step, make_step)
    )
    assert count == weights, (name, count, weights)
    both = {
        key: repeat_in_graph(fn, steps)
        for key, fn in {"bare": bare, "step": step}.items()
    }
    for run in both.values():
        run()
    times: dict[str, list[float]] = {key: [] for key in both}
    for _ in range(repeats):
        for key, run in both.items():
            times[key].append(time_call(run) / steps)
    # Not medians: other processes only ever add to a time.
    seconds = {key: min(values) for key, values in times.items()}
    ratio = seconds["step"] / seconds["bare"]
    bare_ms, step_ms = 1e3 * seconds["bare"], 1e3 * seconds["step"]
    print(
        f"{name:<17}{weights:>10,} weights, batch {batch:>2}: {step_ms:8.2f} "
        f"ms a step, bare {bare_ms:8.2f} ms, ratio {ratio:5.2f}",
        flush=True,
    )
    return ratio


def time_call(fn: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    fn()
    return time.perf_counter() - start


def main() -> None:
    """Compares the decoders one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(DRAW))
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--tokens_batch_size", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    keep_freed_memory()  # as every training does
    ratios = []
    for name in args.models.split(","):
        is_large = name == "transformer"
        batch = args.tokens_batch_size if is_large else args.batch_size
        ratios.append(compare(name, batch, args.repeats, args.steps))
    print(f"largest ratio {max(ratios):.2f} (goal: at most {GOAL})")


if __name__ == "__main__":
    main()
