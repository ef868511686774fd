"""tfcomp: compositional generalization by forced rendering of latents.

A TensorFlow/Keras implementation of "Compositional Generalization via
Forced Rendering of Disentangled Latents" (ICML 2025). Importing the package
is cheap: TensorFlow is imported only by the modules that compute with it.
"""

__version__ = "0.1.0"
