"""Runs pubmark over the nodes of a Ray cluster."""
