"""
Conflicts and lost changes as flat records, for the programs of others.
"""
