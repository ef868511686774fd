"""Training: strategy, Keras `fit`, exact resume."""
