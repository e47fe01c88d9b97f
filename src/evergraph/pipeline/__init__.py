"""The data pipeline on Spark: from files to shards, from shards to a store. `load.Pipeline` is all of it."""
