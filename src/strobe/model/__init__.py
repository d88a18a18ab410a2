"""What the words mean: tables, kinds of regions, units, descriptions of plug-ins. No third-party import."""
