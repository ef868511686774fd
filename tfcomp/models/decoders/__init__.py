"""One decoder a file; each registers itself when this package is imported.

A file has rules, size, cost and layers of its decoder. A new file here is a new
decoder: nothing else lists them.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
