"""The statements of an application, from records of its server (counters, logs) or files of SQL. Pure.

statement.py      a statement with its share of the load and its samples
collection.py     statements of all sources, grouped if they differ only in constants
sources.py        reading a source of any form
counters.py       rows of pg_stat_statements
document.py       an earlier list of statements
logs.py           csvlog, jsonlog, text, auto_explain
parsing.py        kind and fingerprint, by PostgreSQL's parser
client_scripts.py commands and variables of pgbench and psql
literals.py       parameters and their values
value_choice.py   values that statistics suggest
neutral_values.py values of constants in a result, units of time and intervals
secrets.py        secrets in statements, which must not be stored
"""
