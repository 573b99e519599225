"""Query plans: read what EXPLAIN printed, in one spelling for all majors; find what differs, and say it. Pure.

explain.py       EXPLAIN's JSON, as servers, psql and logs have it, to plans
plan.py          what a plan is: nodes in the order in which EXPLAIN prints them
reading.py       one raw node to ours
operators.py     what nodes are called, and which are of one family
bitmaps.py       bitmap index scans, as part of their heap scan
structure.py     whether a JSON value is a plan
quoting.py       where expressions open and close
expressions.py   conditions and keys in one spelling
subplans.py      subplans in one spelling: 17 writes them otherwise than 16
measured.py      what nodes did: rows, loops, time and blocks of their own
levels.py        how far two plans are apart, and their fingerprints
matching.py      which node of one plan is which of the other
changes.py       kinds of changes
operator_rules.py, condition_rules.py, fact_rules.py, amount_rules.py   pairs of nodes to changes
difference.py    what changed between two plans
sentences/       changes in words
"""
