"""The pipeline on this machine: its folder, its run, its progress."""
