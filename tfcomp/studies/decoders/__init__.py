"""Which decoders compose on which split, and what predicts it."""
