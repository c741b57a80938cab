"""
What binlogs do not show: places of epochs that left no trace, and moments at which rows were judged.

Hypotheses are tried with the reference engine; those stay whose effect is the one that the binlogs show.
"""
