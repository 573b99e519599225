"""Results on disk: one SQLite file, append-only and crash-safe, and raw artifacts beside it.

schema.sql     the tables, with what each column means
plans.sql      those of plans
folder.py      folders, their lock, the errors of both sides
codec.py       value objects to JSON and back; columns that older results lack
counters.py    the counters of a trial in one field
latencies.py   latency distributions of a context
plans.py       plans to rows and back
writing.py     writing
reading.py     reading, also what may come from anybody
rows.py        rows of the form in which they are written
invariants.py  what holds for all that is written
"""
