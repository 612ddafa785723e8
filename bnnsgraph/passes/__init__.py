"""Passes: what is changed in a graph before XLA compiles it. The recorded graph itself never changes."""
