"""Results in, text out. Pure, and the only place where numbers are rounded.

answer.py    what every report shows
units.py     numbers as people read them
sentences.py the answer in words
terminal.py  tables for a terminal or a pipe
document.py  the JSON document
"""
