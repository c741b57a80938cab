"""
What is wrong with the values of the columns that conflict functions compare.
"""
