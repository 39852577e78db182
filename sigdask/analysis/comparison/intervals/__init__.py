"""How sure a difference is: which interval each comparison has, what must be counted for it, and what was found."""
