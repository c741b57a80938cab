"""
Compiled loops over the bytes of events.
"""
