! Broadcasts and reductions of a Fortran program, every number checked: with -DMODULE=mpi one of Fortran 90, with
! -DMODULE=mpi_f08 one of Fortran 2008, which passes a part of an array with gaps, too.
program check
  use MODULE
  implicit none
  integer, parameter :: most = 50000
  double precision, allocatable :: numbers(:)
  integer :: rank, ranks, root, length, i, wrong, all, ierr
#ifdef FORTRAN_2008
  type(MPI_Request) :: request
#else
  integer :: request
#endif
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  wrong = 0
  do root = 0, ranks - 1
    length = merge(most, 100, mod(root, 2) == 1)
    call fill(length)
    call MPI_Bcast(numbers, length, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD, ierr)
    if (any(numbers /= [(1000 * root + i, i = 1, length)])) wrong = 1
    call fill(length)
    call MPI_Ibcast(numbers, length, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    if (any(numbers /= [(1000 * root + i, i = 1, length)])) wrong = 1
#ifdef FORTRAN_2008
    call fill(length)
    call MPI_Bcast(numbers(1:length:2), length / 2, MPI_DOUBLE_PRECISION, root, MPI_COMM_WORLD)
    if (any(numbers(1:length:2) /= [(1000 * root + i, i = 1, length, 2)])) wrong = 1
    if (rank /= root .and. any(numbers(2:length:2) /= -1)) wrong = 1
#endif
    call reduce
  end do
  call MPI_Allreduce(wrong, all, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. all == 0) print *, 'ok: collectives'
  call MPI_Finalize(ierr)
  if (all /= 0) stop 1

contains

  subroutine fill(length)
    integer, intent(in) :: length
    if (rank == root) then
      numbers = [(dble(1000 * root + i), i = 1, length)]
    else
      numbers = [(-1d0, i = 1, length)]
    end if
  end subroutine

  subroutine reduce
    double precision :: own, total, all_of(ranks)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Ibarrier(MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    total = rank + root
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (total /= ranks * (ranks - 1) / 2 + ranks * root) wrong = 1
    own = rank
    total = -1
    call MPI_Reduce(own, total, 1, MPI_DOUBLE_PRECISION, MPI_MAX, root, MPI_COMM_WORLD, ierr)
    if (total /= merge(ranks - 1, -1, rank == root)) wrong = 1
    call MPI_Iallreduce(own, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    if (total /= ranks * (ranks - 1) / 2) wrong = 1
    all_of = -1
    call MPI_Allgather(own, 1, MPI_DOUBLE_PRECISION, all_of, 1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
    if (any(all_of /= [(i - 1, i = 1, ranks)])) wrong = 1
  end subroutine
end program
