"""Study of early numbers as predictors of the OOD error (none is)."""
