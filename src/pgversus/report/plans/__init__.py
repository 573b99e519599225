"""Compared plans, shown.

compared.py   plans that were compared, and the JSON document of them
tree.py       a plan, an operator on each line
recalling.py  what brings the plans of a baseline back
side_by_side.py  two plans as rows
undoing.py    which settings plan a statement as before
text.py       compared plans for a terminal or a pipe
markdown.py   the same for a pull request
html.py       the same as a page, from ../templates/
"""
