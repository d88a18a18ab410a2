"""What is found out about a run once it is over: how processes ended, which are missing, names of C functions."""
