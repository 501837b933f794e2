# What a worker of the torchrun test runs: it trains for a while, and is killed, as for want of memory.
import os
import signal
import sys

for step in range(200):
    print("step", step, "loss", 1 / (step + 1), file=sys.stderr, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
