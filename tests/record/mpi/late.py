"""200 steps, none of which blocks: a send is over in the step after its own, a receive and a barrier in the same."""

from mpi4py import MPI

import strobe

world = MPI.COMM_WORLD
halo = bytearray(8)
late = MPI.REQUEST_NULL
for _ in range(200):
    receive = world.Irecv(halo, (world.rank - 1) % world.size, 1)
    late, before = world.Isend(bytearray(8), (world.rank + 1) % world.size, 1), late
    before.Wait()
    receive.Wait()
    world.Ibarrier().Wait()
    strobe.step()
late.Wait()
