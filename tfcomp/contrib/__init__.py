"""Plugins that come with tfcomp and use its public registries alone.

A registry imports the modules of this package when a name is asked for that it
does not know, or when its names are listed. Nothing outside of the package
imports it. A module registers its parts when it is imported, and imports
TensorFlow and other large libraries in the functions that need them.
"""
