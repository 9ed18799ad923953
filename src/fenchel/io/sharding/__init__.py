"""From streams of examples to shards on disk, in memory that does not grow with their number."""

from fenchel.io.sharding.events import shard_events
from fenchel.io.sharding.rows import shard_rows
from fenchel.io.sharding.sequences import shard_sequences
from fenchel.io.sharding.trees import shard_trees

__all__ = ["shard_events", "shard_rows", "shard_sequences", "shard_trees"]
