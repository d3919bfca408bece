"""How calls start their work, and what need not be checked or planned again: memos, plans and prepared calls."""
