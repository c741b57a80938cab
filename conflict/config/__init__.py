"""
What a run is about: the run file, and the forms in which its parts may be given.
"""
