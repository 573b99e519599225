"""Query plans: read what EXPLAIN printed, in one spelling for all majors; find what differs, and word it. Pure.

explain.py      EXPLAIN's JSON, as servers, psql and logs have it, to plans
plan.py         a plan: nodes in the order in which EXPLAIN prints them, and what they did
nodes.py        raw nodes to ours: operators, bitmap scans
expressions.py  conditions, keys and subplans in one spelling
levels.py       how far two plans are apart, and their fingerprints
matching.py     which node of one plan is which of the other
changes.py      kinds of changes, and the rules that find them
difference.py   what changed between two plans
sentences.py    changes as sentences
"""
