"""A study as one page of HTML, which opens from a mail attachment and asks nobody for anything.

page.py         the whole page
library.py      the library that draws charts
verdicts.py     the answer, and the table of verdicts
trust.py        can I trust it?
why.py          plans side by side, and counters that differ
environment.py  servers, settings, builds, host
repeating.py    how it was measured, and how to repeat it
"""
