"""What runs inside the measured program: the session, and the hooks into imports, threads, processes and calls."""
