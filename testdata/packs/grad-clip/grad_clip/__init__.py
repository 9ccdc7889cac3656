"""Gradient clipping with a decaying bound."""
