"""What is on disk: files, run folders, model versions, code versions."""
