"""Figures of paper 3, exploration by Q-ensembles."""
