"""PostgreSQL itself: clusters, servers, sessions.

client.py       the one pgbench and psql that are used against every arm
cluster.py      data directories: initdb, copies
server.py       start, readiness, stop, and no orphan ever
labels.py       how servers are shown
settings_check.py  what a server makes of a setting
session.py      connections, and what pgversus asks of a server
catalog.py      the questions, each a named function; the longer ones lie in sql/
counters.py     what a server has done so far
load_sessions.py   whether the sessions of a load are at work
vacuum_report.py   what VACUUM says that it did
progress_report.py  what a session is doing just now
explain.py      plans of statements, what they return, the statistics behind them
fingerprint.py  what the arms must share: rows, settings, locale, build
dataset.py      loading
"""
