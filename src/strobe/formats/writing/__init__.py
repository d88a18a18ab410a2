"""What exporters share."""
