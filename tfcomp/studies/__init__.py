"""Studies: questions asked of many finished runs.

They stand on the library, and nothing outside imports them but the commands.
"""
