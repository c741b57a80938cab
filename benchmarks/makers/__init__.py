"""Makers of binlogs and Histories to measure with."""
