"""PostgreSQL itself: clusters, servers, sessions.

client.py             the pgbench and psql that are used against every arm
cluster.py            data directories: initdb, copies
server.py             start, readiness, stop
settings_check.py     what a server makes of a setting
session.py            connections
labels.py             how servers are shown
catalog.py            questions asked of servers, each a named function; the longer ones are in sql/
counters.py           what a server has done so far
load_sessions.py      whether the sessions of a load are at work
operation_reports.py  what VACUUM and the progress views report
explain.py            plans of statements, what they return, the statistics behind them
fingerprint.py        what the arms must share: rows, settings, locale, build
"""
