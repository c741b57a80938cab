"""
How the answers of commands look on the terminal, and as JSON.
"""
