"""Convert results to text. Pure functions; numbers keep full precision until they are formatted here.

verdicts.py           a verdict in plain fields
caveats.py            the sentences of caveats
sentences.py          the answer to one comparison in sentences
size.py               how well the size of a difference is known
advice.py             the next step, once for all undecided verdicts
study_answer.py       the answer to a study as a whole
upgrade_sentences.py  the answer of an upgrade check in sentences
upgrade_tables.py     the same as tables
upgrade_document.py   the same as a document
answer_table.py       a table that is the answer
timeline.py           consecutive versions as bars
statements.py         the statements of an application
overview.py           overview of a study: rows, order of verdicts, caveats
values.py             metrics and counters as rows
arm_tables.py         tps, latencies, times and sizes of every arm as rows
sweeps.py             numeric levels: lines, plateaus, maps of two factors
why.py                why a contender differs, from plans and counters
attribution.py        the measured effect of a plan change
plans.py              compared plans: document, trees side by side, settings that restore a plan
published.py          published figures next to the measured ones
methodology.py        measurement method and host
windows.py            an arm's work per block
study_page.py         the contents of a study's report, in order
summary.py            the answer on one screen, and as a picture
console.py            the console, and the styles of reports on it
terminal.py           the full report, as tables for a terminal or a pipe
markdown.py           Markdown for a pull request
html.py               HTML pages from templates, and their security policy
json_document.py      the JSON document
tidy_tables.py        one row per verdict or trial: CSV, Arrow, Parquet
inventory.py          installed servers and the cache
dry_run.py            a dry run
page/                 a study as a single HTML page
article/              a study as an article
side_by_side/         two results side by side
charts/               charts and their files
"""
