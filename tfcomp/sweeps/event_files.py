"""TensorBoard's event files, without TensorFlow.

TensorBoard's own reader imports TensorFlow where it is installed, which takes
longer than reading. The format (TFRecord): the length of a record as 8 bytes,
4 bytes of checksum, the record, 4 bytes of checksum.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

_HEADER = struct.Struct("<QI")
_CHECKSUM_BYTES = 4


def read_scalars(
    folder: Path, tags: Collection[str]
) -> dict[str, dict[int, float]]:
    """Curves of a run: for every tag that it has, step to value.

    A run that was interrupted has several files, in the order of their
    names; what it computed again replaces what was there.

    Args:
        folder: The run folder.
        tags: The scalars to read, as `ood/mse`.
    """
    curves: dict[str, dict[int, float]] = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for record in read_records(path):
            event = Event.FromString(record)
            for value in event.summary.value:
                if value.tag in tags:
                    number = _to_float(value)
                    curves.setdefault(value.tag, {})[event.step] = number
    return curves


def read_records(path: Path) -> Iterator[bytes]:
    """The records of a file, up to one that is not complete."""
    with open(path, "rb") as file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, _ = _HEADER.unpack(header)
            record = file.read(length)
            if len(record) < length:
                return
            file.seek(_CHECKSUM_BYTES, io.SEEK_CUR)
            yield record


def format_events(summary: Summary) -> bytes:
    """The content of an event file with one summary, at step 0."""
    buffer = io.BytesIO()
    writer = RecordWriter(buffer)
    for event in (
        Event(wall_time=0.0, file_version="brain.Event:2"),
        Event(wall_time=0.0, step=0, summary=summary),
    ):
        writer.write(event.SerializeToString())
    return buffer.getvalue()


def _to_float(value: Summary.Value) -> float:
    tensor = value.tensor
    if tensor.float_val:
        return float(tensor.float_val[0])
    return float(np.frombuffer(tensor.tensor_content, "<f4")[0])
