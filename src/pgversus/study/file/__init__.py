"""The study file: TOML in, a checked `Study` out.

read.py         from text to study, with the profile merged in
schema.py       the schema: every table and key
key_types.py    the types of keys, and the base of tables
description.py  the schema in words, and as JSON Schema
document.py     TOML text to plain tables, with the line of every key
problems.py     collects all problems of a file
keys.py         keys shared by tables: files, settings, quantities, exclusive keys
workloads.py    workloads, datasets and loads
operations.py   the steps of operations
factors.py      the factors of a file
matrix.py       factors with their levels, their matrix, and the compared factor
selection.py    exclude and only
application.py  the statements of an application
contexts.py     contexts, arms and designs
reference.py    the reference page and the JSON schema, generated from the schema
"""
