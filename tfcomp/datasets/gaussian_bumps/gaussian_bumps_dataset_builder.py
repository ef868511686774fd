"""TFDS builder of Gaussian bumps with held-out factor combinations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from tfcomp.config import make_config
from tfcomp.datasets.dataset import Dataset
from tfcomp.datasets.dataset import make_dataset

REGIONS = {
    "donut": "square:6-22",
    "corner": "corner:14",
    "cross": "cross:11-16",
    "gap": "gap:x:10-16",
    "diagonal": "diagonal:3",
    "all": "none",
}


@dataclasses.dataclass
class BumpsConfig(tfds.core.BuilderConfig):
    """Settings of one configuration; the names are those of the flags."""

    dataset: str = "gaussian_bumps"
    region: str = "square:6-22"
    num_bumps: int = 0
    grid_size: int = 28
    sigma: float = 1.0
    polarity: str = "bright"


class Builder(tfds.core.GeneratorBasedBuilder):
    """The factor table and the renderer of `--dataset=gaussian_bumps`."""

    name = "gaussian_bumps"
    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}
    BUILDER_CONFIGS = [
        BumpsConfig(name=name, region=region, description=f"Without {region}.")
        for name, region in REGIONS.items()
    ] + [
        BumpsConfig(
            name=name,
            dataset="stripes",
            region="corner:14",
            num_bumps=num_bumps,
            description=f"All stripes and {num_bumps} ID bumps.",
        )
        for name, num_bumps in (("stripes", 0), ("stripes_and_bumps", 50))
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        size = self.builder_config.grid_size
        pixels = tfds.features.Tensor(shape=(size, size, 1), dtype=np.float32)
        features = {"image": pixels, "is_ood": np.bool_}
        for factor in self._dataset().space:
            features[f"label_{factor.name}"] = tfds.features.ClassLabel(
                num_classes=factor.size
            )
            features[f"value_{factor.name}"] = np.float32
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(features),
            # The input is factors, not one feature: no (input, target) pair.
            supervised_keys=None,
            homepage="https://arxiv.org/abs/2501.18797",
        )

    def _split_generators(
        self, dl_manager: tfds.download.DownloadManager
    ) -> dict[str, Any]:
        splits = self._dataset().splits
        generators = {"train": self._generate_examples(splits.train, False)}
        if splits.is_ood.any():
            ood = splits.grid[splits.is_ood]
            generators["ood"] = self._generate_examples(ood, True)
        return generators

    def _generate_examples(
        self, table: np.ndarray, is_ood: bool
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        dataset = self._dataset()
        images = dataset.render_array(table)
        labels = dataset.space.to_index(table)
        for row, image in enumerate(images):
            example = {"image": image, "is_ood": is_ood}
            for column, factor in enumerate(dataset.space):
                example[f"label_{factor.name}"] = int(labels[row, column])
                example[f"value_{factor.name}"] = table[row, column]
            yield row, example

    def _dataset(self) -> Dataset:
        config = self.builder_config
        return make_dataset(
            make_config(
                {
                    "dataset": config.dataset,
                    "region": config.region,
                    "num_bumps": config.num_bumps,
                    "grid_size": config.grid_size,
                    "sigma": config.sigma,
                    "polarity": config.polarity,
                }
            )
        )
