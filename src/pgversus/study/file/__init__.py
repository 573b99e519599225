"""The study file: TOML in, a checked `Study` out.

read.py         the way from text to study
schema.py       every table and key: the one schema
json_schema.py  the same for editors, and to be looked into
document.py     TOML text to plain tables
places.py       the line of every key
validation.py   a document against the schema
description.py  what the schema says of a key, in words
values.py       how values are shown
problems.py     all problems of a file, collected
profiles.py     a profile merged into its file
contents.py     the files that a study names
settings.py     settings
forms.py        keys of which a table has exactly one
workloads.py    workloads, datasets and loads
operations.py   operations, and what makes the state that they need
kinds.py        loads and operations in one file
matrix.py       factors with their levels, and what they span
factors.py      the factors of a file
variables.py    those that are variables
compared.py     the compared factor and its baseline
designs.py      the design
quantities.py   durations and shares, by the parsers of the flags
selection.py    exclude and only
expansion.py    contexts and arms
reference.py    the page and the JSON schema, made from the schema
"""
