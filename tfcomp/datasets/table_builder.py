"""Base of the TFDS builders: a factor table and a renderer on disk."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from tfcomp.config.run_config import all_fields, make_config
from tfcomp.datasets.dataset import Dataset, make_dataset


@dataclasses.dataclass
class TableConfig(tfds.core.BuilderConfig):
    """A configuration: flags of a run, by default their defaults.

    Without `data_dir`, MNIST is looked up in the folder of the dataset itself.
    """

    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class TableBuilder(  # type: ignore[call-arg]
    tfds.core.GeneratorBasedBuilder, skip_registration=True
):
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
        dataset, kinds = self._dataset(), tfds.features
        pixels = kinds.Tensor(shape=dataset.image_shape, dtype=np.float32)
        features = {"image": pixels, "is_ood": np.bool_, "row": np.int64}
        for factor in dataset.space:
            label = kinds.ClassLabel(num_classes=factor.size)
            features[f"label_{factor.name}"] = label
            features[f"value_{factor.name}"] = np.float32
        return self.dataset_info_from_configs(
            features=kinds.FeaturesDict(features),
            # The input is factors, not one feature: no (input, target) pair.
            supervised_keys=None,
            homepage="https://arxiv.org/abs/2501.18797",
        )

    def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
        dataset = self._dataset()
        dataset.prepare()
        tables = {"train": dataset.splits.train}
        splits = dataset.splits.all
        if splits.is_ood.any():
            tables["ood"] = splits.factors[splits.is_ood]
        return {
            name: self._generate_examples(table, name == "ood")
            for name, table in tables.items()
        }

    def _generate_examples(
        self, table: np.ndarray, is_ood: bool
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        dataset = self._dataset()
        images = dataset.render_array(table)
        labels = dataset.space.to_index(table)
        for row, image in enumerate(images):
            example = {"image": image, "is_ood": is_ood, "row": row}
            for column, name in enumerate(dataset.space.names):
                example[f"label_{name}"] = int(labels[row, column])
                example[f"value_{name}"] = table[row, column]
            yield row, example

    def _dataset(self) -> Dataset:
        flags: dict[str, object] = {"data_dir": str(self._data_dir_root)}
        flags |= self.builder_config.flags
        if unknown := flags.keys() - {field.name for field in all_fields()}:
            raise ValueError(f"there is no flag {', '.join(sorted(unknown))}")
        return make_dataset(make_config(flags))
