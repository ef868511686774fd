"""What the TFDS builders share: a factor table and a renderer on disk."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from tfcomp.config.run_config import make_config
from tfcomp.datasets.dataset import Dataset, make_dataset


@dataclasses.dataclass
class TableConfig(tfds.core.BuilderConfig):
    """Settings of one configuration; the names are those of the flags.

    Attributes:
        seed: Of the draw of positions, where they are drawn at random.
        data_dir: Where TFDS data that rendering needs are; by default where
            the dataset itself is written.
    """

    coordinates: str = "grid"
    num_train: int = 0
    seed: int = 0
    data_dir: str = ""

    def to_flags(self) -> dict[str, Any]:
        """The settings without the fields that TFDS adds."""
        base = {f.name for f in dataclasses.fields(tfds.core.BuilderConfig)}
        names = {f.name for f in dataclasses.fields(self)} - base
        return {name: getattr(self, name) for name in names}


class TableBuilder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """The splits `train` and `ood` of one of our datasets.

    An example has `image`, `is_ood`, for each factor `value_<name>` (NaN
    where absent) and `label_<name>` (-1 where absent), and `row`, its place
    in the table, since TFDS stores examples in an order of its own.
    """

    VERSION = tfds.core.Version("1.1.0")
    RELEASE_NOTES = {
        "1.0.0": "First release.",
        "1.1.0": "Examples have their row.",
    }

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Factors in the order of the table's columns."""
        return self._dataset().space.names

    def _info(self) -> tfds.core.DatasetInfo:
        dataset = self._dataset()
        pixels = tfds.features.Tensor(
            shape=dataset.image_shape, dtype=np.float32
        )
        features = {"image": pixels, "is_ood": np.bool_, "row": np.int64}
        for factor in dataset.space:
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
        dataset = self._dataset()
        dataset.prepare()
        splits = dataset.splits.all
        generators = {
            "train": self._generate_examples(dataset.splits.train, False)
        }
        if splits.is_ood.any():
            ood = splits.factors[splits.is_ood]
            generators["ood"] = self._generate_examples(ood, True)
        return generators

    def _generate_examples(
        self, table: np.ndarray, is_ood: bool
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        dataset = self._dataset()
        images = dataset.render_array(table)
        labels = dataset.space.to_index(table)
        for row, image in enumerate(images):
            example = {"image": image, "is_ood": is_ood, "row": row}
            for column, factor in enumerate(dataset.space):
                example[f"label_{factor.name}"] = int(labels[row, column])
                example[f"value_{factor.name}"] = table[row, column]
            yield row, example

    def _dataset(self) -> Dataset:
        flags = self.builder_config.to_flags()
        flags["data_dir"] = flags["data_dir"] or str(self._data_dir_root)
        return make_dataset(make_config(flags))
