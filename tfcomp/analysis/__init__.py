"""Analysis of trained decoders: pure functions on arrays and stage functions.

Jacobians take any function from factors to named stages; everything else takes
plain arrays. Only `jacobians` and `interaction` import TensorFlow.
"""
