"""Which tool measures what on this machine, and what cannot be had and why.  Measures nothing itself."""
