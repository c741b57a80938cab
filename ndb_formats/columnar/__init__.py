"""
Row events to Arrow, many rows at a time.
"""
