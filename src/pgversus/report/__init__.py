"""Results in, text out. Pure; numbers stay whole until they are shown here.

answer.py         what every report shows
verdicts.py       a verdict in plain fields
sentences.py      the answer to one comparison in words, and the next step
overview.py       a study at a glance: rows, sentences, the order of verdicts
values.py         metrics, counters, latencies, times and sizes as rows
sweeps.py         levels that are amounts: lines, plateaus, maps of two factors
why.py            why a contender differs, as far as plans and counters show
plans.py          compared plans: document, trees side by side, settings that restore a plan
published.py      published figures beside the measured ones
methodology.py    how it was measured, and on which host
study_page.py     the contents of a study's report, in order
summary.py        the answer on one screen, and as a picture
terminal.py       everything, as tables for a terminal or a pipe
markdown.py       Markdown for a pull request
html.py           pages of HTML from templates, and what a page may do
json_document.py  the JSON document
tidy_tables.py    a row for each verdict or trial: CSV, Arrow, Parquet
inventory.py      installed servers, the cache, a dry run
page/             a study as one page of HTML
article/          a study as a write-up
side_by_side/     two results side by side
charts/           charts and their files
"""
