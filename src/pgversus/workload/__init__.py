"""One window of a workload on one server: commands, output, logs.

pgbench.py          command line and summary of pgbench
pgbench_run.py      one run of pgbench as a window
aligned_run.py      a run of which one interval counts, which several hosts share
pgbench_log.py      pgbench's transaction log as histograms, or as slices of a run that was stopped and continued
operation_run.py    one repetition of an operation, timed step by step
sent_statements.py  the statements that a script sends, with variables filled in by pgbench
"""
