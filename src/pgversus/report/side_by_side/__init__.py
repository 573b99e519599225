"""Two results side by side, where they answer the same question.

matching.py       which contexts and contenders belong together
discrepancies.py  other differences between two that ask the same
agreement.py      whether two ratios agree, in plain fields
document.py       from two answers to these fields, to JSON and to rows of CSV
section.py        the same as texts, for every renderer
text.py           terminal, Markdown and HTML
"""
