"""Two results side by side, as far as they answer the same question.

matching.py       match contexts and contenders
discrepancies.py  other differences between matched verdicts
agreement.py      whether two ratios agree, in plain fields
document.py       convert two answers to these fields, to JSON and to rows of CSV
section.py        the same as texts, for every renderer
text.py           terminal, Markdown and HTML
"""
