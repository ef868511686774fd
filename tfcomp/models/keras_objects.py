"""Imports, also through others, all Keras classes of models: to load them."""
# ruff: noqa: F401

import tfcomp.models.acting
import tfcomp.models.axis_embedding
import tfcomp.models.composition
import tfcomp.models.encodings.codes
import tfcomp.models.low_rank
import tfcomp.models.low_rank_embedding
import tfcomp.models.pixels
import tfcomp.models.regularizers
