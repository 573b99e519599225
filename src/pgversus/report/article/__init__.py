"""A study as a write-up in Markdown: the tables of such studies with this run's figures, and all that repeats it.

page.py         the sections in their order
environment.py  host, servers, settings and data
figures.py      ratios with intervals and verdicts, and the form of tables
tables.py       tables of loads, of operations, and over levels that are amounts
"""
