# What a process of an MPI job runs: meets the others by what mpirun tells it alone, and tells the sum of what each of them brings along,
# and on which host it is. Every rank brings another power of two, so the sum says who took part.
import socket

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(2**world.rank)
print("rank", world.rank, "of", world.size, "sums up to", total, flush=True)
print("rank", world.rank, "is on", socket.gethostname(), flush=True)
