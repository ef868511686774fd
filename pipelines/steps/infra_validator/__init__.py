"""The step `infra_validator`."""
