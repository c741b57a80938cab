"""
Binlogs to a History in memory, and what they do not say: epochs without a trace, crashes, changes without a log.
"""
