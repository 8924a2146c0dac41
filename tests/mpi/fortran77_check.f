C     Broadcasts and reductions of a Fortran 77 program, every number
C     checked.
      program check
      implicit none
      include 'mpif.h'
      integer most
      parameter (most = 50000)
      integer rank, ranks, root, length, i, wrong, all, ierr
      integer request, status(MPI_STATUS_SIZE)
      integer numbers(most)
      integer sum, op
      external first
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierr)
      wrong = 0
      do 30 root = 0, ranks - 1
        length = 100
        if (mod(root, 2) .eq. 1) length = most
        do 10 i = 1, length
          numbers(i) = -1
          if (rank .eq. root) numbers(i) = 1000 * root + i
   10   continue
        call MPI_BCAST(numbers, length, MPI_INTEGER, root,
     &                 MPI_COMM_WORLD, ierr)
        do 20 i = 1, length
          if (numbers(i) .ne. 1000 * root + i) wrong = 1
   20   continue
        numbers(1) = -1
        if (rank .eq. root) numbers(1) = root
        call MPI_IBCAST(numbers, 1, MPI_INTEGER, root,
     &                  MPI_COMM_WORLD, request, ierr)
        call MPI_WAIT(request, status, ierr)
        if (numbers(1) .ne. root) wrong = 1
   30 continue
      do 60 root = 0, ranks - 1
        call MPI_BARRIER(MPI_COMM_WORLD, ierr)
        call MPI_IBARRIER(MPI_COMM_WORLD, request, ierr)
        call MPI_WAIT(request, status, ierr)
        sum = rank + root
        call MPI_ALLREDUCE(MPI_IN_PLACE, sum, 1, MPI_INTEGER,
     &                     MPI_SUM, MPI_COMM_WORLD, ierr)
        if (sum .ne. ranks * (ranks - 1) / 2 + ranks * root) wrong = 1
        sum = -1
        call MPI_REDUCE(rank, sum, 1, MPI_INTEGER, MPI_SUM, root,
     &                  MPI_COMM_WORLD, ierr)
        if (rank .eq. root .and. sum .ne. ranks * (ranks - 1) / 2)
     &    wrong = 1
        if (rank .ne. root .and. sum .ne. -1) wrong = 1
        call MPI_ALLGATHER(rank + root, 1, MPI_INTEGER, numbers, 1,
     &                     MPI_INTEGER, MPI_COMM_WORLD, ierr)
        do 40 i = 1, ranks
          if (numbers(i) .ne. root + i - 1) wrong = 1
   40   continue
C       The program's own operation, freed while it is in use.
        call MPI_OP_CREATE(first, .false., op, ierr)
        numbers(1) = rank + root
        call MPI_IALLREDUCE(numbers, sum, 1, MPI_INTEGER, op,
     &                      MPI_COMM_WORLD, request, ierr)
        call MPI_OP_FREE(op, ierr)
        call MPI_WAIT(request, status, ierr)
        if (sum .ne. root) wrong = 1
   60 continue
      call MPI_ALLREDUCE(wrong, all, 1, MPI_INTEGER, MPI_MAX,
     &                   MPI_COMM_WORLD, ierr)
      if (rank .eq. 0 .and. all .eq. 0) print *, 'ok: collectives'
      call MPI_FINALIZE(ierr)
      if (all .ne. 0) stop 1
      end

C     The operand of the lowest rank.
      subroutine first(lower, higher, length, type)
      implicit none
      integer length, type, i
      integer lower(length), higher(length)
      do 10 i = 1, length
        higher(i) = lower(i)
   10 continue
      end
