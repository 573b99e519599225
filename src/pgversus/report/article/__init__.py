"""A study as a write-up in Markdown: the tables of such studies with this run's figures, and all that repeats it.

page.py         the sections in their order
fences.py       texts of users as blocks of code, and what is unfolded
cases.py        contexts that run the same work, and which form their tables have
environment.py  host, servers and client
settings.py     what is set, and what differs
data.py         how the data are made
commands.py     what is run, and the command that runs it
figures.py      ratios with their intervals, verdicts and published figures
loads.py        tables of loads
amounts.py      tables over levels that are amounts
operations.py   tables of what is timed once
summary.py      all cases in one table, by EXPLAIN's time and by the metric that is judged
explained.py    the plans of both arms
repeating.py    how it was asked for
"""
