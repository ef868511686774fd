"""Recomputes numbers of packed evidence that follow from its runs' flags.

    python -m benchmarks.mend_evidence docs/decoder_evidence docs/evidence

Until November 2026 `coverage.combinations` was that of the scored sample, of
which half is held out on purpose, and `coverage.pixels` counted a change of
1/255. Runs of sprites before the second comparison of decoders lack `r2`,
which follows from their relative errors and from the images of their split.
Nothing else of an archive changes; one that is right stays as it is. No
network is needed, and none is trained.
"""

import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from tfcomp.config.quiet import start_tensorflow
from tfcomp.config.run_config import RunConfig
from tfcomp.config.run_flags import parse_config
from tfcomp.storage.files import write_bytes
from tfcomp.storage.run_folder import FLAGS_FILE, METRICS_FILE
from tfcomp.studies.claims.evidence import Run
from tfcomp.studies.claims.packed_evidence import parse_run_flags
from tfcomp.studies.decoders.split_facts import SUBSETS, get_r2

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
        flags = files[f"{name.removesuffix(METRICS_FILE)}{FLAGS_FILE}"]
        found = {}
        if "coverage" in metrics:
            found["coverage"] = recompute(flags)
        if "r2" not in metrics:
            found |= convert_errors(flags, metrics)
        if found != {key: metrics.get(key) for key in found}:
            count += 1
            text = json.dumps(metrics | found, indent=2, allow_nan=False)
            files[name] = f"{text}\n".encode()
    if count:
        write_bytes(path, pack(files))
    return count


def convert_errors(flags: bytes, metrics: dict[str, Any]) -> dict[str, Any]:
    """`r2` of a run of sprites, from its errors; nothing of other data."""
    found, _ = parse_run_flags(flags.decode())
    run = Run(Path(), found, metrics)
    if found["dataset"] != "sprites":
        return {}
    with start_tensorflow():
        r2 = {name: get_r2(run, name) for name in SUBSETS}
    return {} if None in r2.values() else {"r2": r2}


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
