"""What is drawn.

pictures.py  charts of a study as files
"""
