"""Questions about a tile program: its work, its bytes, its limits.  Changes nothing."""
