"""
Running servers, which are read and never changed: their settings, definitions, channels and counters, kept as files.
"""
