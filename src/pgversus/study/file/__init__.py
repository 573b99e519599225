"""The study file: TOML in, a checked `Study` out.

read.py         the way from text to study, profiles merged in
schema.py       every table and key: the one schema
description.py  the schema in words, and as JSON Schema
document.py     TOML text to plain tables, with the line of every key
problems.py     all problems of a file, collected
keys.py         what tables share: files, settings, quantities, exclusive keys
workloads.py    workloads, operations, datasets and loads
factors.py      the factors of a file
matrix.py       factors with their levels, what they span, and which one is compared
selection.py    exclude and only
contexts.py     contexts, arms and designs
reference.py    the page and the JSON schema, made from the schema
"""
