"""Calls a module of PyTorch on arrays; the caller has imported PyTorch."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfcomp.config.errors import first_line, suggest
from tfcomp.datasets.factor_table import to_array

MODULE = "torch.nn.modules.module.Module"
OUTPUT = "image"  # name of the module's output, unless it returns a dictionary


def is_module(model: Any) -> bool:
    """Returns True for a module of PyTorch."""
    for base in type(model).__mro__:
        if f"{base.__module__}.{base.__name__}" == MODULE:
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

    def __init__(
        self,
        module: Any,
        layers: Sequence[str] = (),
    ) -> None:
        self._module = module
        self._layers: dict[str, Any] = {}
        submodules: dict[str, Any] = {}
        if layers:
            submodules.update(module.named_modules())
        for name in layers:
            if name not in submodules:
                hint = suggest(name, submodules)
                raise ValueError(f"the module has no layer {name!r}{hint}")
            self._layers[name] = submodules[name]

    def __call__(self, inputs: np.ndarray) -> Any:
        """Returns the output, or a dictionary with layers and the output."""
        torch = sys.modules["torch"]
        with self._evaluate(), torch.no_grad():
            outputs = self._run(self._to_tensor(inputs))
        if self._layers:
            return _convert(outputs)
        return _convert(outputs[OUTPUT])

    def differentiate(self, inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Returns Jacobians [n, units, F], by one forward pass per factor."""
        torch = sys.modules["torch"]
        values = self._to_tensor(inputs)
        columns = []  # the derivatives by each factor
        with self._evaluate(), torch.no_grad():
            for column in range(values.shape[1]):
                tangent = torch.zeros_like(values)
                tangent[:, column] = 1
                _, slopes = torch.func.jvp(self._run, (values,), (tangent,))
                columns.append(_convert(slopes))

        jacobians = {}
        for name in columns[0]:
            slopes = [
                column[name].reshape(len(inputs), -1) for column in columns
            ]
            jacobians[name] = np.stack(slopes, axis=-1)
        return jacobians

    def _run(self, values: Any) -> dict[str, Any]:
        """Returns tensors by name; a dictionary of the module keeps names."""
        outputs: dict[str, Any] = {}

        def keep(name: str) -> Callable:
            def hook(
                _: Any,
                __: Any,
                result: Any,
            ) -> None:
                if isinstance(result, tuple | list):
                    result = result[0]
                outputs[name] = result

            return hook

        with contextlib.ExitStack() as stack:
            for name, layer in self._layers.items():
                handle = layer.register_forward_hook(keep(name))
                stack.callback(handle.remove)
            result = self._module(values)

        if isinstance(result, Mapping) and self._layers:
            outputs.update(result)
        else:
            outputs[OUTPUT] = result
        return outputs

    def _to_tensor(self, inputs: np.ndarray) -> Any:
        values = sys.modules["torch"].from_numpy(np.array(inputs))
        weight = next(self._module.parameters(), None)
        if weight is None:
            return values
        return values.to(weight.device, weight.dtype)

    @contextlib.contextmanager
    def _evaluate(self) -> Iterator[None]:
        """Switches to evaluation; turns errors of a call into one line."""
        modes = [(part, part.training) for part in self._module.modules()]
        self._module.eval()
        try:
            yield
        except (TypeError, RuntimeError, IndexError) as error:
            raise ValueError(
                f"the module cannot be called ({first_line(error)}): pass a "
                "function of arrays that calls it"
            ) from error
        finally:
            for part, mode in modes:
                part.training = mode


def _convert(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _convert(part) for name, part in value.items()}
    if hasattr(value, "detach"):
        return to_array(value)
    return value
