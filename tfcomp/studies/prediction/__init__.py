"""Which early number predicts the OOD error of a trained network?

A factorial design over hyperparameters is trained to one ID error
(`network_training`); statistics of pairs of networks (`pairs`) and prediction
across decoders (`transfer`) judge every measure (`judgement`), by rules that
were fixed before the held-back half of the design was trained.
"""
