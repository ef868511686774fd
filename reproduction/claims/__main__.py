"""The command `python -m reproduction.claims`."""

from reproduction.claims.command import main
from tfcomp.config.process import exit_on_user_error

exit_on_user_error(main)
