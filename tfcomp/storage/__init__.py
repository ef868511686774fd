"""Files on disk: run folders, model versions, code versions."""
