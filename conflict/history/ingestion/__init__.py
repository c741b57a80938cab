"""
Binlogs to a History on disk.
"""
