"""Text that people write and read: translations, units, secrets, SQL.

translation.py  the language of messages and reports; locale/ has the catalogs
units.py        durations, sizes, shares and ratios, parsed and formatted
redaction.py    users, passwords and control characters taken out of text
secrets.py      where a secret value begins and ends
documents.py    the same for JSON documents; nesting bounded
sql.py          strings, names and comments in SQL
"""
