"""
The configuration of a run: the run file, and the other files that it names.
"""
