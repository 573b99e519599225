"""What is run and timed. Each workload is two pure halves: the command line, and the reading of what it printed.

pgbench.py      pgbench's command line and its summary
pgbench_log.py  pgbench's transaction log, read into histograms
pgbench_slices.py  what ended in each slice of a run that was stopped and continued
pgbench_statements.py  what a script sends, its variables filled by pgbench
"""
