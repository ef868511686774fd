"""Published models: the round trip, and everything that is refused."""

import io
import json
import shutil
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tfcomp import published
from tfcomp.config.errors import ConfigError, RunError
from tfcomp.config.run_config import RunConfig
from tfcomp.models import loading
from tfcomp.models.loading import load_published_run, load_run
from tfcomp.report.model_report import ModelReport
from tfcomp.storage import published_folder
from tfcomp.storage.published_folder import FILES, SUMS_FILE
from tfcomp.storage.run_folder import METRICS_FILE, read_metrics
from tfcomp.training.publish import publish_run

NAME = "bumps/cnn/square_4-8"
Change = Callable[[bytes], bytes]


@pytest.fixture(scope="module")
def source(smoke_run: RunConfig, tmp_path_factory: pytest.TempPathFactory):
    """A folder with one published model, which the command has packed."""
    folder = tmp_path_factory.mktemp("published")
    flags = [f"--pack={smoke_run.run_dir}", f"--name={NAME}"]
    assert published.main(["published", *flags, f"--output={folder}"]) == 0
    return folder


@pytest.fixture
def copy(source: Path, tmp_path: Path) -> Path:
    """A copy of the folder, to be damaged."""
    shutil.copytree(source, tmp_path / "copy")
    return tmp_path / "copy"


def sign(model: Path, changes: Mapping[str, Change]) -> None:
    """Changes files and says that they are as published."""
    for file, change in changes.items():
        path = model / file
        path.write_bytes(change(path.read_bytes()))
    contents = {file: (model / file).read_bytes() for file in FILES}
    (model / SUMS_FILE).write_text(published_folder.format_sums(contents))


def put_flags(**values: object) -> Change:
    lines = "".join(f"--{name}={value}\n" for name, value in values.items())
    return lambda content: content + lines.encode()


def write_npz(*arrays: np.ndarray) -> Change:
    def change(_: bytes) -> bytes:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for number, values in enumerate(arrays):
                with archive.open(f"{number:03d}.npy", "w") as file:
                    np.lib.format.write_array(file, values)
        return content.getvalue()

    return change


def test_round_trip(smoke_run: RunConfig, source: Path) -> None:
    run = load_published_run(NAME, str(source))
    known = load_run(smoke_run.run_dir)
    weights = (model.get_weights() for model in (run.model, known.model))
    for found, truth in zip(*weights, strict=True):
        np.testing.assert_array_equal(found, truth)
    assert run.config.identity() == known.config.identity()
    assert (run.name, run.path) == ("bumps_cnn_square_4_8", None)
    found, truth = ModelReport(run), ModelReport(known)
    assert found.stages == truth.stages
    np.testing.assert_array_equal(found.draw(x=3, y=4), truth.draw(x=3, y=4))
    for subset in ("id", "ood"):
        for name, value in run.metrics[subset].items():
            assert found.scores[subset][name] == pytest.approx(value, rel=1e-6)
            assert known.metrics[subset][name] == pytest.approx(value, rel=1e-6)
    held_out = run.dataset.splits.grid[run.dataset.splits.is_ood]
    drawn = known.model.predict(held_out, verbose=0)
    truth = run.dataset.render_array(held_out)
    spread = np.square(truth - truth.mean(axis=0)).sum()
    r2 = 1 - np.square(drawn - truth).sum() / spread
    assert run.metrics["r2"]["ood"] == pytest.approx(r2, rel=1e-4)
    text = (source / NAME / "README.md").read_text()
    assert f'tfcomp.load_published("{NAME}")' in text


def test_the_same_run_gives_the_same_bytes(
    smoke_run: RunConfig, source: Path, tmp_path: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(smoke_run.run_dir, old)
    metrics = read_metrics(old)
    del metrics["train"]["weights"]  # as runs of earlier versions
    (old / METRICS_FILE).write_text(json.dumps(metrics))
    for run in (smoke_run.run_dir, old):  # the second one replaces the first
        publish_run(Path(run), NAME, new)
    for file in (f"{NAME}/{file}" for file in (*FILES, SUMS_FILE)):
        assert (new / file).read_bytes() == (source / file).read_bytes()
    # Nothing says where things lay on this machine, and nothing is left.
    for path in new.rglob("*"):
        assert not path.name.startswith(".partial")
        content = path.read_bytes() if path.is_file() else b""
        assert str(Path(smoke_run.log_dir).parent).encode() not in content


@pytest.mark.parametrize("file", [*FILES, SUMS_FILE])
def test_damaged_files_are_named(copy: Path, file: str) -> None:
    path = copy / NAME / file
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = bytes([content[middle] ^ 1])
    for damage in (
        content[:middle] + flipped + content[middle + 1 :],
        content[:middle],
        b"",
        content + b"\n",
    ):
        path.write_bytes(damage)
        with pytest.raises(RunError, match="damaged") as refused:
            load_published_run(NAME, str(copy))
        assert str(path) in str(refused.value) or file == SUMS_FILE
    path.unlink()
    words = "published models" if file == SUMS_FILE else "is missing"
    with pytest.raises(RunError, match=words):
        load_published_run(NAME, str(copy))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (put_flags(plugins="evil"), "--plugins cannot be published"),
        (put_flags(flagfile="evil.flags"), "has a line '--flagfile"),
        (put_flags(region="not:file:x.csv"), "--region cannot be published"),
        (put_flags(width=0), "--width must be at least"),
        (put_flags(width=65536), "too few for layers|must be smaller"),
        (put_flags(width=7), r"weights.npz must have .* got"),
        (lambda _: b"import os", "has a line 'import os'"),
    ],
)
def test_foreign_flags(
    copy: Path, monkeypatch: pytest.MonkeyPatch, flags: Change, words: str
) -> None:
    monkeypatch.chdir(copy)
    Path("evil.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    sign(copy / NAME, {"run.flags": flags})
    with pytest.raises(RunError, match=words) as refused:
        load_published_run(NAME, str(copy))
    assert "\n" not in str(refused.value)
    assert not Path("ran").exists() and "evil" not in sys.modules


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (lambda c: c[: len(c) // 2], "is no .npz archive"),
        (lambda _: b"PK\x03\x04 nothing", "is no .npz archive"),
        (write_npz(np.zeros(12000, "f4")), "must have 8 arrays, got 1"),
    ],
)
def test_foreign_weights(copy: Path, weights: Change, words: str) -> None:
    sign(copy / NAME, {"weights.npz": weights})
    with pytest.raises(RunError, match=words):
        load_published_run(NAME, str(copy))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((2, 3), "f8"), "must have float32 or float16 .* got float64"),
        (np.full((2, 3), np.nan, "f4"), "finite"),
        (np.array([[print, 1, 2], [3, 4, 5]], object), "allow_pickle"),
        (np.zeros((2, 3), ">f4"), "got >f4"),
    ],
)
def test_wrong_arrays(values: np.ndarray, words: str) -> None:
    with pytest.raises(RunError, match=words):
        loading.read_arrays(write_npz(values)(b""))


def forge_size(content: bytes, size: int) -> bytes:
    """Says in both headers of an archive's only member that it has a size."""
    forged = bytearray(content)
    for header, offset in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        start = content.index(header) + offset
        forged[start : start + 4] = size.to_bytes(4, "little")
    return bytes(forged)


def test_weights_that_lie(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = write_npz(np.zeros(10, "f4"))(b"")
    monkeypatch.setattr(loading, "build_model", pytest.fail)
    for size, words in (
        (2**32 - 2, "unpacks to 4,294,967,294 bytes"),
        (2**27, "has 10 numbers, too few for layers of 2,048"),
    ):
        lie = forge_size(small, size)
        changes = {"weights.npz": lambda _, lie=lie: lie}
        sign(copy / NAME, changes | {"run.flags": put_flags(width=2048)})
        with pytest.raises(RunError, match=words):
            load_published_run(NAME, str(copy))


def test_weights_unpack_no_more_than_they_say() -> None:
    member, content = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(member, np.zeros(loading.MAX_UNPACKED // 4, "f4"))
    start = member.getvalue().replace(b"(67108864,), ", b"(25000,),    ")
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("000.npy", start, compresslevel=1)
    bomb = forge_size(content.getvalue(), 100_128)
    tracemalloc.start()
    with pytest.raises(RunError, match=r"is no \.npz archive"):
        loading.read_arrays(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        (b"{}", "no scores"),
        (b'{"id": {"mse": NaN}}', "no JSON"),
        (b'{"id": 3}', "other things"),
        (b'{"id": {"mse": %d}}' % 10**400, "no numbers"),
        (b"[" * 100000, "no JSON"),
    ],
)
def test_foreign_metrics(copy: Path, metrics: bytes, words: str) -> None:
    sign(copy / NAME, {"metrics.json": lambda _: metrics})
    with pytest.raises(RunError, match=words):
        load_published_run(NAME, str(copy))
    with pytest.raises(RunError, match=words):
        published_folder.list_published(str(copy))


def test_a_hash_pins_a_model(copy: Path) -> None:
    sums = (copy / NAME / SUMS_FILE).read_bytes()
    sha256 = published_folder.hash_bytes(sums)
    load_published_run(NAME, str(copy), sha256)
    sign(copy / NAME, {"README.md": lambda content: content + b"more"})
    with pytest.raises(RunError, match="is not the model of sha256"):
        load_published_run(NAME, str(copy), sha256)


def test_scores_must_be_those_of_the_model(
    smoke_run: RunConfig, tmp_path: Path
) -> None:
    path = shutil.copytree(smoke_run.run_dir, tmp_path / "run")
    metrics = (path / "metrics.json").read_text()
    value = str(load_run(path).metrics["ood"]["mse"])
    (path / "metrics.json").write_text(metrics.replace(value, "0.001", 1))
    with pytest.raises(RunError, match="the model of this run has ood/mse="):
        publish_run(path, NAME, tmp_path / "new")
    flags = (path / "run.flags").read_text().splitlines()
    lines = [f.replace("--plugins=", "--plugins=mine") for f in flags]
    (path / "run.flags").write_text("\n".join(lines))
    with pytest.raises(ConfigError, match="plugins cannot be published"):
        publish_run(path, NAME, tmp_path / "new")
    assert not (tmp_path / "new").exists()
