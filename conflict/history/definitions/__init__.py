"""Definitions of tables over time."""
