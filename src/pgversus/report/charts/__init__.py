"""What is drawn: each chart a specification in Vega-Lite, with its table.

chart.py      a chart as data
theme.py      colours, marks, fonts
ratio_axis.py an axis of ratios
axes.py       which values of other axes are labelled
series.py     lines that are told apart
forest.py     every verdict with its interval
run_order.py  every trial in the order of time
sweep.py      lines over levels that are amounts
heat.py       two factors as a map
latency.py    percentiles
of_study.py   all charts of a study
pictures.py   charts as files
"""
