"""Two results beside each other, where they answer the same question.

put.py        what is put beside each other, in plain fields
question.py   whether two contexts ask the same, and in what they do not
matching.py   which contexts and contenders belong together
around.py     what is not alike around two that ask the same
agreement.py  whether two ratios agree
making.py     from two answers to what is put beside each other
section.py    the same as texts, for every renderer
terminal.py   tables for a terminal or a pipe
markdown.py   the same for a pull request
html.py       the same as a page, from ../templates/
document.py   the JSON document and the rows of CSV
"""
