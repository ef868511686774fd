"""Imports all modules of models: saved ones have classes of any."""

from tfcomp.config.plugins import CONTRIB, import_modules

import_modules("tfcomp.models")
import_modules(CONTRIB, nested=True)
