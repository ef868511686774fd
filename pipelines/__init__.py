"""Pipelines that chain data, training, evaluation and release."""
