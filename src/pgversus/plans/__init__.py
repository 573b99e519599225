"""Query plans: parses EXPLAIN output of all major versions, compares plans, and describes differences. Pure.

explain.py         parses EXPLAIN's JSON from servers, psql and logs
plan.py            a plan: nodes in EXPLAIN's order, and their measurements
own_work.py        the work of each node itself
call_syntax.py     calls in the syntax of the SQL standard as plain calls
nodes.py           converts raw nodes: operators, bitmap scans
expressions.py     normalizes conditions, keys and subplans
levels.py          the level at which plans differ, and fingerprints
matching.py        matches the nodes of two plans
alignment.py       gives subplans and repeated reads of two plans the same names
order.py           whether an index replaces a sort
plan_keys.py       which rows are told apart by which expressions
statement_rows.py  how the rows that a statement returns or writes can be compared
changes.py         kinds of changes; changed conditions, keys and facts
amounts.py         changed amounts of work: rows, estimates, memory, blocks
operators.py       changed operators
difference.py      the difference of two plans
sentences.py       changes as sentences
"""
