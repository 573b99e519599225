"""Results on disk: one SQLite file, append-only and crash-safe, and raw artifacts beside it.

schema.sql    the tables, with what each column means
plans.sql     those of plans
files.py      folders, and the errors of both sides
lock.py       one run at a time
columns.py    columns that older results lack
codec.py      value objects to JSON and back
counters.py   the counters of a trial in one field
latencies.py  latency distributions of a context
plans.py      plans to rows and back
results.py    writing
reading.py    reading
opening.py    opening what may come from anybody
rows.py       rows of the form in which they are written
invariants.py  what holds for all that is written
attributions.py  where it is kept what plans account for
"""
