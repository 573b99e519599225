"""Text for users: translations, units, secrets, SQL.

translation.py  the language of messages and reports; locale/ has the catalogs
units.py        parses and formats durations, sizes, shares and ratios
redaction.py    removes users, passwords and control characters from text
secrets.py      start and end of secret values
documents.py    removes secrets from JSON documents; limits nesting
validation.py   errors of documents that do not have the expected form
sql.py          strings, names and comments in SQL
"""
