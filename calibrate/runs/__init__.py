"""Measured runs of real engines, one format a file."""
