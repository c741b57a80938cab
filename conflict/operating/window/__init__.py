"""
How long changes took from one cluster to another over time, and how long they could conflict there.
"""
