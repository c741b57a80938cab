"""
Exhaustive search of small scopes for the shortest schedule after which two clusters differ. Computes docs/diverge.md.
"""
