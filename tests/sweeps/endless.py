"""A command that ends when it is killed."""

import os
import time


def main(argv: list[str]) -> int:
    print(os.getpid(), flush=True)
    time.sleep(600)
    return 0
