"""Figures of paper 5, Retrace."""
