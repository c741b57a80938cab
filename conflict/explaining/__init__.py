"""
Why rows ended as they did: the story of a row over its clusters, told from a result and the binlogs.
"""
