"""
Column types: one codec each, and character sets.
"""
