"""Results on disk: one SQLite file, append-only and crash-safe, and raw artifacts beside it.

schema.sql    the tables, with what each column means
results.py    writing
"""
