"""Evaluates one trained model: scores, stages, metrics of the claims."""
