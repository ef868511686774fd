"""Recomputes `coverage` in packed evidence from the flags of its runs.

    python -m benchmarks.mend_coverage docs/decoder_evidence docs/evidence

Until November 2026 `coverage.combinations` was that of the scored sample, of
which half is held out on purpose, and `coverage.pixels` counted a change of
1/255. Nothing else of an archive changes; one that is right stays as it is.
No network is needed, and none is trained: coverage is a fact of the split.
"""

import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path

from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.storage.files import write_bytes
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE

_KNOWN: dict[str, dict[str, float]] = {}


def mend_archive(path: Path) -> int:
    """Mends the runs of an archive; returns how many were wrong."""
    with tarfile.open(path) as tar:
        files = {
            entry.name: tar.extractfile(entry).read()
            for entry in tar.getmembers()
        }
    count = 0
    for name in [n for n in files if n.endswith(f"/{METRICS_FILE}")]:
        metrics = json.loads(files[name])
        if "coverage" not in metrics:
            continue
        folder = name.removesuffix(METRICS_FILE)
        found = recompute(files[f"{folder}{FLAGS_FILE}"])
        if found != metrics["coverage"]:
            metrics["coverage"], count = found, count + 1
            text = json.dumps(metrics, indent=2, allow_nan=False)
            files[name] = f"{text}\n".encode()
    if count:
        write_bytes(path, pack(files))
    return count


def recompute(flags: bytes) -> dict[str, float]:
    """The coverage of a run with these flags."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, FLAGS_FILE)
        file.write_bytes(flags)
        config = parse_config([f"--flagfile={file}"])
    key = repr((config.data, config.eval_points, config.training.seed))
    if key not in _KNOWN:
        _KNOWN[key] = measure(config)
    return _KNOWN[key]


def measure(config: RunConfig) -> dict[str, float]:
    """The coverage of a split."""
    with start_tensorflow():
        from tfcomp.datasets import make_dataset
        from tfcomp.datasets.solvable import measure_coverage

    return measure_coverage(make_dataset(config))


def pack(files: dict[str, bytes]) -> bytes:
    """An archive as `tfcomp.studies.claims.packed_evidence` writes it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:xz", preset=9) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def main(folders: list[str]) -> None:
    """Mends the archives of some folders."""
    for folder in folders:
        for path in sorted(Path(folder).glob("*.tar.xz")):
            print(f"{path}: {mend_archive(path)} runs mended", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
