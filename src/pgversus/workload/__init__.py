"""One window of a workload on one server: commands, output, logs.

pgbench.py          pgbench's command line and its summary
pgbench_run.py      one run of pgbench, read into a window
pgbench_log.py      its transaction log as histograms, or as slices of a run that was stopped and continued
operation_run.py    one repetition of an operation, timed step by step
sent_statements.py  the statements that a script sends, its variables filled by pgbench
"""
