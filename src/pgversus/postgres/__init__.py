"""PostgreSQL itself: clusters, servers, sessions.

client.py             the pgbench and psql that are used for every arm
cluster.py            data directories: initdb, copies
server.py             start, readiness, stop
settings_check.py     validation of settings by the server itself
session.py            connections
labels.py             display names of servers
catalog.py            queries, each a named function; the longer ones are in sql/
counters.py           cumulative counters of a server
load_sessions.py      state of the sessions of a load
operation_reports.py  output of VACUUM and the progress views
parameters.py         parameters of a statement: types, columns, values
explain.py            plans of statements, and the statistics behind them
row_digests.py        digests of the rows that statements return or write
fingerprint.py        properties that the arms must share: rows, settings, locale, build
"""
