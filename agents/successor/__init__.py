"""Successor Uncertainties: Thompson sampling through successor features."""
