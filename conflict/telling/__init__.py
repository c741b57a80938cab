"""
One small value for what is told of a result, and what shows it: on a terminal, as HTML, as pictures.
"""
