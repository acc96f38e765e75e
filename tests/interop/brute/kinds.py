"""The kinds of questions: how one is made up, what the model answers, and how each face is asked."""

from brute import ask_archive, ask_around, ask_backlinks, ask_changes, ask_links, ask_pages, ask_programs, ask_tables

KINDS = {}
for part in (ask_links, ask_pages, ask_backlinks, ask_around, ask_archive, ask_tables, ask_changes, ask_programs):
    KINDS.update(part.KINDS)
