"""The table of callbacks that users register (`tfcomp.register_callback`)."""

from tfcomp.config.registry import Registry

CALLBACKS = Registry("callback")
register_callback = CALLBACKS.register


def forget_own() -> None:
    """Takes back all registered callbacks."""
    CALLBACKS.clear()
