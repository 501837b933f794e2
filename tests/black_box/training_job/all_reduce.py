# What a worker of the rendezvous test runs: meets the others by its environment alone, and tells the sum of what each of
# them brings along. Every rank brings another power of two, so the sum says who took part.
import datetime

import torch
import torch.distributed as distributed

distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=100))
share = torch.tensor([2 ** distributed.get_rank()])
distributed.all_reduce(share)
print("rank", distributed.get_rank(), "of", distributed.get_world_size(), "sums up to", share.item())
distributed.destroy_process_group()
