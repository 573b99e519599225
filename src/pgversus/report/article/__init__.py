"""A study as an article in Markdown: the usual tables with the results of this run, and all steps to reproduce it.

page.py         the sections, in order
environment.py  host, servers, settings and data
figures.py      ratios with intervals and verdicts, and the layout of tables
tables.py       tables of loads, of operations, and over numeric levels
"""
