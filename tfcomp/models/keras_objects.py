"""Imports, also through others, all Keras classes of models: to load them."""
# ruff: noqa: F401

import tfcomp.models.acting
import tfcomp.models.by_pixel
import tfcomp.models.composed
import tfcomp.models.encodings.population_codes
import tfcomp.models.low_rank
