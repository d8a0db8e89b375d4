"""A file per tool: whether it can be used here, its command line, and its format turned into records.

Nobody else's format goes past this room.
"""
