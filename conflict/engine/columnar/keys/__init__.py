"""
Keys that tie rows of any two buckets together, and keys that are spelled in several ways.
"""
