"""
The rows that a question needs, read from a History: the part of the logs that a run reads, and some of its rows.
"""
