"""Calls a module of PyTorch on arrays; the caller has imported PyTorch."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfcomp.config.errors import first_line, suggest
from tfcomp.datasets.table_checks import to_array

MODULE = "torch.nn.modules.module.Module"
OUTPUT = "image"  # name of the module's output, unless it returns a dictionary


def is_module(model: Any) -> bool:
    """Returns True for a module of PyTorch."""
    kinds = type(model).__mro__
    return any(f"{k.__module__}.{k.__name__}" == MODULE for k in kinds)


class TorchModule:
    """A module as a function of arrays, left in the mode that it was in."""

    def __init__(self, module: Any, layers: Sequence[str] = ()) -> None:
        self._module = module
        known = dict(module.named_modules()) if layers else {}
        for name in layers:
            if name not in known:
                hint = suggest(name, known)
                raise ValueError(f"the module has no layer {name!r}{hint}")
        self._layers = {name: known[name] for name in layers}

    def __call__(self, inputs: np.ndarray) -> Any:
        """Returns the output, or a dictionary with layers and the output."""
        torch = sys.modules["torch"]
        with self._evaluate(), torch.no_grad():
            outputs = self._run(self._to_tensor(inputs))
        return _convert(outputs if self._layers else outputs[OUTPUT])

    def differentiate(self, inputs: np.ndarray) -> dict[str, np.ndarray]:
        """Returns Jacobians [n, units, F], by one forward pass per factor."""
        torch = sys.modules["torch"]
        values, columns = self._to_tensor(inputs), []
        with self._evaluate(), torch.no_grad():
            for column in range(values.shape[1]):
                tangent = torch.zeros_like(values)
                tangent[:, column] = 1
                pair = torch.func.jvp(self._run, (values,), (tangent,))
                columns.append(_convert(pair[1]))
        count = len(inputs)
        return {
            name: np.stack([c[name].reshape(count, -1) for c in columns], -1)
            for name in columns[0]
        }

    def _run(self, values: Any) -> dict[str, Any]:
        """Returns tensors by name; a dictionary of the module keeps names."""
        outputs: dict[str, Any] = {}

        def keep(name: str) -> Callable:
            def hook(_: Any, __: Any, result: Any) -> None:
                is_many = isinstance(result, tuple | list)
                outputs[name] = result[0] if is_many else result

            return hook

        with contextlib.ExitStack() as stack:
            for name, layer in self._layers.items():
                handle = layer.register_forward_hook(keep(name))
                stack.callback(handle.remove)
            result = self._module(values)
        named = isinstance(result, Mapping) and self._layers
        return outputs | (dict(result) if named else {OUTPUT: result})

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
    return to_array(value) if hasattr(value, "detach") else value
