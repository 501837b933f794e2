# What a worker of a JAX job runs: meets the others by its environment alone, and tells the sum of what each of them brings along. Every
# process brings another power of two, so the sum says who took part.
import os

import jax

jax.distributed.initialize(
    os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])
)
from jax.experimental import multihost_utils

shares = multihost_utils.process_allgather(jax.numpy.asarray(2 ** jax.process_index()))
print("rank", jax.process_index(), "of", jax.process_count(), "sums up to", int(shares.sum()), flush=True)
