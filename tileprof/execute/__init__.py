"""Where cases run: child processes for compiling and launching, and the sweep that feeds them and keeps what comes out."""
