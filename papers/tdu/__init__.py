"""Figures of paper 4, temporal difference uncertainties."""
