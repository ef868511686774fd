"""Version 2 of the claims: rules fixed before the seeds that they judge."""
