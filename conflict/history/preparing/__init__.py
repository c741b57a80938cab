"""
What is known of a run's logs before their rows are read: their files and pieces, restarts, definitions over time.
"""
