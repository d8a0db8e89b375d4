"""What people and machines read: the HTML page, the Markdown summary, figures.

Modules here turn the conclusions of :mod:`tileprof.analyse` into text and pictures.  They compute no figure of their own beyond
units, scales and places on paper.
"""
