"""Imports all modules of models: saved ones have classes of any."""

import tfcomp.models
from tfcomp.models.decoders import import_all

import_all(tfcomp.models)
