"""What is run and timed. Each workload is two pure halves: the command line, and the reading of what it printed.

pgbench.py          pgbench's command line and its summary
pgbench_log.py      its transaction log as histograms, or as slices of a run that was stopped and continued
sent_statements.py  the statements that a script sends, its variables filled by pgbench
"""
