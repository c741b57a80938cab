"""
Why rows ended as they did: the story of a row on all clusters, from a result and the binlogs.
"""
