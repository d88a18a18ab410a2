"""The mesh of a distributed training: dimensions of groups, stages of pipelines, exchanges of experts."""
