"""Graphs as Swift source against Apple's ``BNNSGraph.Builder``."""
