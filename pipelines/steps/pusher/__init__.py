"""The step `pusher`."""
