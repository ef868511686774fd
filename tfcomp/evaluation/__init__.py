"""One trained model, measured: scores, stages, measures of the claims."""
