"""
Compiled loops of the ingest.
"""
