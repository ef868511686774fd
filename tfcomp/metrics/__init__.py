"""Analysis of trained decoders: functions of arrays and stage functions."""
