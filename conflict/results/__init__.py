"""
The result of a run: its model, its layout on disk, its summary.
"""
