"""The question: what is compared, under which work, by which design. Pure.

servers.py     how a server is named on the command line
settings.py    --set NAME=A,B,C
workload.py    what is run and timed
comparison.py  arms, dataset, workload and design together
design.py      blocks, windows, margin, budget
schedule.py    the order of windows inside a block
metrics.py     the quantities that are measured, with unit and better direction
caveats.py     reasons to trust a result less
"""
