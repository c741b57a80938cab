"""
What binlogs do not show: states of rows before the log, places of epochs that left no trace, moments of judging.
"""
