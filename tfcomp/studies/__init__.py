"""Studies of many finished runs, which only commands import."""
