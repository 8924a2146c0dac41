C     Broadcasts of a Fortran 77 program, every number checked.
      program check
      implicit none
      include 'mpif.h'
      integer most
      parameter (most = 50000)
      integer rank, ranks, root, length, i, wrong, all, ierr
      integer request, status(MPI_STATUS_SIZE)
      integer numbers(most)
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
      call MPI_ALLREDUCE(wrong, all, 1, MPI_INTEGER, MPI_MAX,
     &                   MPI_COMM_WORLD, ierr)
      if (rank .eq. 0 .and. all .eq. 0) print *, 'ok: broadcasts'
      call MPI_FINALIZE(ierr)
      if (all .ne. 0) stop 1
      end
