"""
Resolvers that come with the program: rules of other systems. Computes docs/resolvers.md.
"""
