"""Questions to many processes: map and combine, by a pool of processes or a cluster."""
