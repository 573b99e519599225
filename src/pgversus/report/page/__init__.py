"""A study as one page of HTML, which opens from a mail attachment and loads nothing.

page.py         the whole page
verdicts.py     the answer, and the table of verdicts
trust.py        can I trust it?
why.py          plans side by side, and counters that differ
environment.py  servers, settings, builds and host; how it was measured, and how to repeat it
"""
