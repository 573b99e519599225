"""A study as a single HTML page, which opens from a mail attachment and loads nothing.

page.py         the whole page
verdicts.py     the answer, and the table of verdicts
trust.py        can I trust it?
why.py          plans side by side, and counters that differ
environment.py  servers, settings, builds and host; the method, and how to reproduce the results
"""
