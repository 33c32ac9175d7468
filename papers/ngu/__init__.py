"""Figures of paper 2, Never Give Up."""
