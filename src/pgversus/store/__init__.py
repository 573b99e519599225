"""Results on disk: one append-only, crash-safe SQLite file, and raw artifacts next to it.

schema.sql       the tables and the meaning of their columns
later.sql        the tables added since the first results
folder.py        results folders, their lock, errors of reading and writing
codec.py         conversion of value objects to JSON and back; columns that older results lack
counters.py      the counters of a trial in one column
latencies.py     latency distributions of a context
plans.py         conversion of plans to rows and back
leases.py        which host of a fleet may measure which block
writing.py       writing results
results_file.py  the file, which may be untrusted: opened without executing anything in it
reading.py       reading results
rows.py          validated rows
invariants.py    invariants of all written results
"""
