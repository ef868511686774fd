"""TFDS builder of a rotated digit with a gap in its angles."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from tfcomp.config import make_config
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.dataset import make_dataset


@dataclasses.dataclass
class DigitsConfig(tfds.core.BuilderConfig):
    """Settings of one configuration; the names are those of the flags."""

    region: str = "gap:angle:160-200"
    num_angles: int = 1000
    digit_source: str = "mnist"
    digit_class: int = 4
    digit_index: int = 0


class Builder(tfds.core.GeneratorBasedBuilder):
    """The angles and the renderer of `--dataset=rotated_digits`."""

    name = "rotated_digits"
    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}
    BUILDER_CONFIGS = [
        DigitsConfig(name="mnist", description="The first MNIST 4."),
        DigitsConfig(
            name="stand_in",
            digit_source="stand_in",
            description="A drawn 4, not MNIST; needs no data.",
        ),
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        angle = self._dataset().space["angle"]
        features = {
            "image": tfds.features.Tensor(shape=(28, 28, 1), dtype=np.float32),
            "is_ood": np.bool_,
            "label_angle": tfds.features.ClassLabel(num_classes=angle.size),
            "value_angle": np.float32,
        }
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(features),
            supervised_keys=None,
            homepage="https://arxiv.org/abs/2501.18797",
        )

    def _split_generators(
        self, dl_manager: tfds.download.DownloadManager
    ) -> dict[str, Any]:
        dataset = self._dataset()
        dataset.prepare()
        splits = dataset.splits
        generators = {"train": self._generate_examples(splits.train, False)}
        if splits.is_ood.any():
            ood = splits.grid[splits.is_ood]
            generators["ood"] = self._generate_examples(ood, True)
        return generators

    def _generate_examples(
        self, table: np.ndarray, is_ood: bool
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        dataset = self._dataset()
        labels = dataset.space.to_index(table)
        for row, image in enumerate(dataset.render_array(table)):
            yield (
                row,
                {
                    "image": image,
                    "is_ood": is_ood,
                    "label_angle": int(labels[row, 0]),
                    "value_angle": table[row, 0],
                },
            )

    def _dataset(self) -> Dataset:
        config = self.builder_config
        names = [f.name for f in dataclasses.fields(DigitsConfig)]
        shared = set(names) - {
            f.name for f in dataclasses.fields(tfds.core.BuilderConfig)
        }
        flags = {name: getattr(config, name) for name in shared}
        return make_dataset(
            make_config(
                {
                    "dataset": "rotated_digits",
                    "data_dir": str(self._data_dir_root),
                    **flags,
                }
            )
        )
