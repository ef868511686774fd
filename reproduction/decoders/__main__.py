"""The command `python -m reproduction.decoders`."""

from reproduction.decoders.command import main
from tfcomp.config.process import exit_on_user_error

exit_on_user_error(main)
