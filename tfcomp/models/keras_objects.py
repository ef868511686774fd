"""Imports, also through others, all Keras classes of models: to load them."""
# ruff: noqa: F401

import tfcomp.models.acting
import tfcomp.models.composed
import tfcomp.models.forced_rendering
import tfcomp.models.pixels
