"""The Spark engine: the kernel in shards, with Spark moving facts between them."""

from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.merging import MergingSpark
from evergraph.engines.spark.session import make_session

__all__ = ["MergingSpark", "SparkEngine", "make_session"]
