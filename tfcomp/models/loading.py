"""Loads models: finished runs, and models of other software.

Models of Keras, TensorFlow, PyTorch or NumPy have their outputs checked.
"""

import contextlib
import hashlib
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfcomp.config.errors import (
    ConfigError,
    RunError,
    first_line,
    is_exhausted,
    suggest,
)
from tfcomp.config.plugins import CONTRIB, admit_plugins, import_modules
from tfcomp.config.run_config import RunConfig
from tfcomp.datasets import Dataset, make_dataset
from tfcomp.datasets.factor_table import to_array
from tfcomp.models.registry import list_stages, make_stage_model
from tfcomp.storage import run_folder
from tfcomp.storage.files import DamagedFileError
from tfcomp.storage.run_folder import FLAGS_FILE, MODEL_FILE, WEIGHTS_HASH

Row = dict[str, Any]
IMAGE = "image"  # name of the output, unless a model names it
# Outputs of encoders that are embeddings, the first ones before others.
EMBEDDINGS = ("image_embeds", "pooler_output", "last_hidden_state")
TORCH_MODULE = "torch.nn.modules.module.Module"
# From factors [n, F] to named activations [n, ...], images among them.
Outputs = Mapping[str, Any]
Arrays = dict[str, np.ndarray]
Call = Callable[[tf.Tensor], Outputs]
# From arrays [n, ...] to arrays by layer, the output last.
Activate = Callable[[np.ndarray], Arrays]
_SILENT = ("InputLayer", "Dropout", "Flatten", "Reshape")


@dataclass(frozen=True, repr=False)
class LoadedRun:
    """A finished run.

    Attributes:
        path: Its folder; None for a model trained elsewhere.
        config: Its settings.
        dataset: Its data.
        model: Its network.
        metrics: The content of `metrics.json`.
        description: The model and its data, in words.
        reader: A `Reader`, if one was given.
        tables: More results by name, each a list of rows.
    """

    path: Path | None
    config: RunConfig
    dataset: Dataset
    model: keras.Model
    metrics: dict[str, Any]
    description: str
    reader: Any = None
    tables: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.config.run_name


def load_run(path: str | Path) -> LoadedRun:
    """Loads a finished run.

    Args:
        path: Its folder. Its plugins must be imported already.

    Raises:
        RunError: A file is missing, damaged, of another run, or of a stranger's
            code.
    """
    path = Path(path)
    config = run_folder.read_config(path)
    model_file = path / MODEL_FILE
    admit_plugins(path, config.plugins)
    try:
        metrics = run_folder.read_metrics(path)
        model = load_model(model_file)
    except Exception as error:  # damaged files raise errors of many kinds
        if is_exhausted(error):
            raise
        rule = "has a model that would run code (Lambda), which is refused"
        if "safe_mode" not in str(error):  # of Keras
            if not isinstance(error, DamagedFileError):
                error = DamagedFileError(model_file, error)
            rule = f"is damaged: {error}: {_describe_repair(path)}"
        raise RunError(f"--run={path} {rule}") from error
    _check_weights(path, model, metrics)
    dataset = _find_data(path, config)
    dataset.prepare()
    text = run_folder.read_flags_text(path)
    return LoadedRun(
        path=path,
        config=config,
        dataset=dataset,
        model=model,
        metrics=metrics,
        description=text,
    )


def _describe_repair(path: Path) -> str:
    command = run_folder.describe_resume(path)
    return f"remove this file, and repair the run with {command}"


def _check_weights(
    path: Path,
    model: keras.Model,
    metrics: dict[str, Any],
) -> None:
    """Refuses a model that does not belong to the scores of its run.

    Args:
        path: The run folder.
        model: The model in it.
        metrics: The content of `metrics.json`; runs of earlier versions have no
            hash of their weights.

    Raises:
        RunError: The weights are of another model, or not finite.
    """
    problem = ""
    file = path / MODEL_FILE
    digest = hash_weights(model)
    if metrics.get(WEIGHTS_HASH, digest) != digest:
        problem = "is not the model that metrics.json scores"
    for weight in model.trainable_weights:
        if not np.isfinite(weight).all():
            problem = "has weights that are not finite"
    if problem:
        raise RunError(f"--run: {file} {problem}: {_describe_repair(path)}")


def _find_data(path: Path, config: RunConfig) -> Dataset:
    """Makes the dataset of a run; says what to do if its file is elsewhere."""
    try:
        return make_dataset(config)
    except ConfigError as error:
        if error.name != "data":
            raise
        cure = "work in the folder where the run was trained, or correct"
        cure += f" the line --data in {path / run_folder.FLAGS_FILE}"
        raise RunError(f"--run={path}: {error}: {cure}") from error


def hash_weights(model: keras.Model) -> str:
    """Hashes all weights of a model, in any order, for `metrics.json`."""
    hashes = []
    for weight in model.get_weights():
        content = weight.tobytes()
        hashes.append(hashlib.sha256(content).digest())
    # A user's layer may make its weights in another order when it is loaded.
    joined = b"".join(sorted(hashes))
    return hashlib.sha256(joined).hexdigest()


def load_model(path: str | Path) -> keras.Model:
    """Loads a Keras file after checking its size.

    Args:
        path: The file, which may have layers of tfcomp.

    Raises:
        DamagedFileError: It would fill the memory.
    """
    run_folder.check_model(Path(path))
    import_layers()
    return keras.models.load_model(path)


def import_layers() -> None:
    """Imports all modules of models: saved ones have classes of any."""
    import_modules("tfcomp.models")
    import_modules(CONTRIB, nested=True)


def _pick_image(outputs: Any) -> Any:
    if isinstance(outputs, tuple | list):
        raise ValueError(
            f"the model returns {len(outputs)} outputs: pass a function that "
            "returns one of them"
        )
    if not isinstance(outputs, Mapping):
        return outputs
    if IMAGE in outputs:
        return outputs[IMAGE]
    *_, last = outputs.values()
    return last


def open_model(
    model: Any,
    stages: list[str],
    pick: Callable = _pick_image,
) -> tuple[list[str], Call, Activate | None]:
    """Opens a model as functions of factors.

    Args:
        model: A Keras model, SavedModel, module of PyTorch or function of
            arrays [n, F], or the path of a saved model or run.
        stages: Names of stages; empty for all that the model itself names.
        pick: Picks the image among several outputs of a Keras model or a
            SavedModel; by default the entry `image`, else the last one.

    Returns:
        The names of the stages, a function to all outputs, and one to exact
        Jacobians, or None if TensorFlow differentiates the model.

    Raises:
        ValueError: If it is no model, or lacks a stage.
        RunError: If a path holds no model.
    """
    if isinstance(model, (str, Path)):
        model = _load(Path(model))
    if isinstance(model, keras.Model):
        names, call = _open_keras(model, stages, pick)
        return names, call, None
    if hasattr(model, "signatures"):
        names, call = _open_signatures(model, stages, pick)
        return names, call, None
    names = [*stages, IMAGE]
    if is_module(model):
        module = TorchModule(model, stages)
        call = _call_numpy(module, names)
        return stages, call, module.differentiate
    if not callable(model):
        raise ValueError(f"model must be a model or a function, got {model!r}")
    call = _call_numpy(model, names)
    return stages, call, None


class Encoder:
    """A model of images as a function from arrays [n, ...] to its layers.

    Of several outputs by name, as models of Hugging Face have, the one of the
    name `output` is taken, else the first of `EMBEDDINGS`, else the last one.

    Args:
        model: A model as for `open_model`, of images [n, H, W, C].
        layers: Names of layers; empty for all at the top of the model. Those
            of a function are entries of its dictionary.
        output: The name that the model's output gets; `IMAGE` for a decoder,
            from latents to images.

    Attributes:
        taken: The name of the output that was taken, if there were others.
    """

    def __init__(self, model: Any, layers: Sequence[str], output: str) -> None:
        self.taken = ""
        self._output = output
        self._layers = list(layers) or _list_layers(model)
        self._is_torch = is_module(model)
        is_keras = isinstance(model, keras.Model)
        self._call: Callable = model
        if self._is_torch:
            self._call = TorchModule(model, self._layers)
        elif is_keras or not callable(model):
            opened = open_model(
                model,
                self._layers,
                pick=lambda outputs: outputs,
            )
            self._layers, call, _ = opened
            self._call = lambda values: call(tf.constant(values))

    def __call__(self, inputs: np.ndarray) -> Arrays:
        """Returns layers of inputs [n, ...], the output last, [n, units].

        Raises:
            ValueError: If the model lacks a layer, or gives no embedding.
        """
        values = inputs
        if self._is_torch and values.ndim == 4:  # channels come first there
            values = values.transpose(0, 3, 1, 2)
        outputs = self._call(values)
        if not isinstance(outputs, Mapping):
            outputs = {IMAGE: outputs}

        layers = {}
        others = dict(outputs)
        for name in self._layers:
            if name not in outputs:
                raise ValueError(f"the model gives no {name}")
            layers[name] = outputs[name]
            others.pop(name, None)
        layers[self._output] = self._pick(others or outputs)

        num_rows = len(inputs)
        activations = {}
        for name, value in layers.items():
            array = _to_array(name, value, num_rows)
            activations[name] = array.reshape(num_rows, -1)
        return activations

    def _pick(self, outputs: Any) -> Any:
        """Picks the embedding among the outputs of the model."""
        if hasattr(outputs, "_asdict"):  # a named tuple
            outputs = outputs._asdict()
        if isinstance(outputs, Mapping) and outputs:
            names = list(outputs)
            candidates = (self._output, *EMBEDDINGS, names[-1])
            name = next(name for name in candidates if name in names)
            if len(names) > 1 and name != self._output:
                self.taken = name
            return self._pick(outputs[name])

        is_several = isinstance(outputs, tuple | Mapping)
        if isinstance(outputs, list):
            is_several = any(np.ndim(value) > 1 for value in outputs)
        if is_several:
            raise ValueError(
                f"the model gives no {self._output}, but {len(outputs)} "
                "outputs: pass a function that returns one of them, such as "
                "lambda inputs: model(inputs)[0]"
            )
        return outputs


def _list_layers(model: Any) -> list[str]:
    """Returns the layers at the top of a model, without the last one."""
    if is_module(model):
        names = []
        for name, _ in model.named_children():
            names.append(name)
        return names[:-1]
    if not isinstance(model, keras.Model):
        return []

    names = []
    for layer in model.layers[:-1]:
        kind = type(layer).__name__
        if kind not in _SILENT:
            names.append(layer.name)
    return names


def _open_keras(
    model: keras.Model,
    stages: list[str],
    pick: Callable,
) -> tuple[list[str], Call]:
    inputs = getattr(model, "inputs", None) or []
    if len(inputs) > 1:
        raise ValueError(
            f"the model takes {len(inputs)} inputs: pass a function of factors "
            "[n, F] that calls it, lambda f: model([f[:, :1], f[:, 1:]])"
        )

    names = stages
    if not names:
        every_stage = list_stages(model)
        names = _without_image(every_stage)
    stage_model = None
    if names:
        stage_model = make_stage_model(model, names)

    def call(factors: tf.Tensor) -> Outputs:
        outputs: dict[str, Any] = {}
        if stage_model is not None:
            activations = stage_model(factors)
            outputs.update(activations)
        prediction = model(factors)
        outputs[IMAGE] = pick(prediction)
        return outputs

    return names, call


def _without_image(names: Sequence[str]) -> list[str]:
    return [name for name in names if name != IMAGE]


def _load(path: Path) -> Any:
    """Loads a run, a SavedModel or a Keras file."""
    if (path / FLAGS_FILE).exists():
        return load_run(path).model
    if path.is_file() and path.suffix != ".keras":
        cure = "save it by model.save('model.keras'), or pass the model itself"
        raise RunError(f"{path} must be a .keras file or a SavedModel: {cure}")

    try:
        if path.is_dir():
            folder = str(path)
            return tf.saved_model.load(folder)
        return load_model(path)
    except TypeError as error:  # classes that Keras does not know
        raise RunError(
            f"{path} cannot be loaded ({first_line(error)}): import the "
            "module of its layers first, or pass the model itself"
        ) from error
    except (OSError, ValueError, zipfile.BadZipFile, RunError) as error:
        rule = f"must hold a model: {first_line(error)}"
        raise RunError(f"{path} {rule}") from error


def _open_signatures(
    loaded: Any,
    stages: list[str],
    pick: Callable,
) -> tuple[list[str], Call]:
    predict = loaded.signatures.get("serving_default")
    if predict is None:
        raise ValueError(
            "the SavedModel has no signature serving_default: write it by "
            "model.export(folder), or pass a function"
        )

    activate = loaded.signatures.get("activations")
    available: list[str] = []
    if activate:
        available = sorted(activate.structured_outputs)
    names = stages or _without_image(available)
    missing = set(names).difference(available)
    if missing:
        text = ", ".join(sorted(missing))
        raise ValueError(f"the SavedModel has no stages {text}")

    argument = _find_argument(predict)
    # The activations of tfcomp's own exports hold the image as well.
    is_export = "geometry" in loaded.signatures
    has_image = is_export and IMAGE in available

    # A signature does not keep the variables of its model: `owner` does.
    def call(factors: tf.Tensor, owner: Any = loaded) -> Outputs:
        """Evaluates the signatures that give the image and the stages."""
        outputs: dict[str, Any] = {}
        if names:
            activations = activate(factors=factors)
            outputs.update(activations)
            if has_image:
                return outputs
        inputs = {argument: factors}
        prediction = predict(**inputs)
        outputs[IMAGE] = pick(prediction)
        return outputs

    return names, call


def _find_argument(signature: Any) -> str:
    """Returns the name of the only argument of a signature."""
    _, inputs = signature.structured_input_signature
    if len(inputs) != 1:
        raise ValueError(
            f"the SavedModel takes {len(inputs)} inputs "
            f"({', '.join(sorted(inputs))}): pass a function of factors "
            "[n, F] that calls it"
        )
    return next(iter(inputs))


def _call_numpy(
    function: Callable[[np.ndarray], Any],
    names: list[str],
) -> Call:
    """Wraps a function of arrays, to be called from within TensorFlow."""

    def evaluate(factors: np.ndarray) -> list[np.ndarray]:
        """Evaluates the function; a ValueError names what it lacks."""
        num_rows = len(factors)
        outputs = function(factors)
        if not isinstance(outputs, Mapping):
            outputs = {IMAGE: outputs}
        missing = [name for name in names if name not in outputs]
        if missing:
            raise ValueError(f"the model gives no {', '.join(missing)}")

        arrays = []
        for name in names:
            output = outputs[name]
            array = _to_array(name, output, num_rows)
            arrays.append(array)
        return arrays

    def call(factors: tf.Tensor) -> Outputs:
        """Evaluates the function, eagerly or as an operation of a graph."""
        if tf.executing_eagerly():
            array = factors.numpy()
            values = evaluate(array)
        else:
            types = [tf.float32] * len(names)
            values = tf.numpy_function(evaluate, [factors], types)
        named = zip(names, values, strict=True)
        return dict(named)

    return call


def _to_array(name: str, value: Any, num_rows: int) -> np.ndarray:
    is_sequence = isinstance(value, tuple | list)
    if is_sequence and len(value) != num_rows:
        raise ValueError(
            f"the model returns {len(value)} outputs: return the images, or a "
            "dictionary with 'image' and named stages"
        )
    array = to_array(value)
    check_output(
        name,
        array.shape,
        array.dtype,
        num_rows,
    )
    return array.astype(np.float32)


def check_output(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    num_rows: int,
) -> None:
    """Checks an output of a model.

    Args:
        name: The output, as it is called in messages.
        shape: Its shape.
        dtype: Its type.
        num_rows: The number of inputs that the model was called with.

    Raises:
        ValueError: If rows or type are invalid.
    """
    if dtype.kind in "cOSUmM":
        raise ValueError(f"{name} must have real numbers, got {dtype}")
    if not shape or shape[0] != num_rows:
        got = "a number"
        if shape:
            got = f"{shape[0]} rows"
        raise ValueError(
            f"{name} must have a row for each of {num_rows} inputs, got "
            f"{got}: return [n, ...] for n inputs"
        )


def is_module(model: Any) -> bool:
    """Returns True for a module of PyTorch."""
    for base in type(model).__mro__:
        name = f"{base.__module__}.{base.__name__}"
        if name == TORCH_MODULE:
            return True
    return False


class TorchModule:
    """A module as a function of arrays, left in the mode that it was in.

    Args:
        module: The module; it takes one tensor [n, ...].
        layers: Names of its submodules, whose outputs are returned as well.

    Raises:
        ValueError: If it has no such layer, or in a call that fails.
    """

    def __init__(self, module: Any, layers: Sequence[str] = ()) -> None:
        self._module = module
        self._layers: dict[str, Any] = {}
        submodules = {}
        if layers:
            submodules = dict(module.named_modules())
        for name in layers:
            if name not in submodules:
                hint = suggest(name, submodules)
                raise ValueError(f"the module has no layer {name!r}{hint}")
            self._layers[name] = submodules[name]

    def __call__(self, inputs: np.ndarray) -> Any:
        """Calls the module with inputs [n, ...].

        Returns:
            Its output, or a dictionary with layers and the output.
        """
        torch = sys.modules["torch"]
        with self._evaluate(), torch.no_grad():
            values = self._to_tensor(inputs)
            outputs = self._run(values)
        if self._layers:
            return outputs
        return outputs[IMAGE]

    def differentiate(self, inputs: np.ndarray) -> Arrays:
        """Differentiates layers and output, by a forward pass for each factor.

        Args:
            inputs: The points, [n, F].

        Returns:
            Jacobians by layer, [n, units, F].
        """
        torch = sys.modules["torch"]
        num_points = len(inputs)
        values = self._to_tensor(inputs)

        columns: dict[str, list[np.ndarray]] = {}  # one by each factor
        with self._evaluate(), torch.no_grad():
            for index in range(values.shape[1]):
                tangent = torch.zeros_like(values)
                tangent[:, index] = 1
                _, slopes = torch.func.jvp(
                    self._run,
                    primals=(values,),
                    tangents=(tangent,),
                )
                for name, slope in slopes.items():
                    array = to_array(slope)
                    column = array.reshape(num_points, -1)
                    columns.setdefault(name, []).append(column)

        jacobians = {}
        for name, parts in columns.items():
            jacobians[name] = np.stack(parts, axis=-1)
        return jacobians

    def _run(self, values: Any) -> dict[str, Any]:
        """Returns tensors by name; a dictionary of the module keeps names."""
        outputs: dict[str, Any] = {}

        def keep(name: str) -> Callable:
            """Makes a hook that keeps the first result of a layer."""

            def hook(_: Any, __: Any, result: Any) -> None:
                if isinstance(result, Mapping):
                    result = list(result.values())
                if isinstance(result, tuple | list):
                    result = result[0]
                outputs[name] = result

            return hook

        with contextlib.ExitStack() as stack:
            for name, layer in self._layers.items():
                hook = keep(name)
                handle = layer.register_forward_hook(hook)
                stack.callback(handle.remove)
            result = self._module(values)

        if isinstance(result, Mapping) and self._layers:
            outputs.update(result)
        else:
            outputs[IMAGE] = result
        return outputs

    def _to_tensor(self, inputs: np.ndarray) -> Any:
        torch = sys.modules["torch"]
        array = np.array(inputs)
        values = torch.from_numpy(array)
        parameters = self._module.parameters()
        weight = next(parameters, None)
        if weight is None:
            return values
        return values.to(weight.device, weight.dtype)

    @contextlib.contextmanager
    def _evaluate(self) -> Iterator[None]:
        """Switches to evaluation; turns errors of a call into one line."""
        parts = list(self._module.modules())
        modes = [part.training for part in parts]
        self._module.eval()
        try:
            yield
        except (TypeError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"the module cannot be called ({first_line(error)}): pass a "
                "function of arrays that calls it"
            ) from error
        finally:
            for part, mode in zip(parts, modes, strict=True):
                part.training = mode
