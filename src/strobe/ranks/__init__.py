"""Communication between ranks and GPUs: traffic, links, waits."""
