"""Which early number predicts the OOD error of a trained network?"""
