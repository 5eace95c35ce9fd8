! SPDX-License-Identifier: BSD-3-Clause
! Fortran 2008 with `use mpi_f08`, where MPICH calls MPI_X for routines with a buffer and PMPI_X for those without: a
! library that sees only one half breaks here.
program f08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Request) :: request, requests(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Message) :: message
  type(MPI_Errhandler) :: handler
  integer :: rank, n, left, right, i, number, in(2), out(2), provided, level
  logical :: flag
  double precision :: x, y

  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Query_thread(level)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, n)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  out = [rank, rank * 3]
  print '(I0,A,L1)', rank, ': level as given ', level == provided

  call MPI_Irecv(in(1), 1, MPI_INTEGER, left, 1, comm, requests(1))
  call MPI_Isend(out(1), 1, MPI_INTEGER, right, 1, comm, requests(2))
  call MPI_Waitall(2, requests, statuses)
  print '(I0,A,I0,A,I0,A,L1)', rank, ': got ', in(1), ' tag ', statuses(1)%MPI_TAG, ' null ', &
    requests(1) == MPI_REQUEST_NULL
  call MPI_Irecv(in(2), 1, MPI_INTEGER, left, 2, comm, request)
  call MPI_Send(out(2), 1, MPI_INTEGER, right, 2, comm)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_INTEGER, number)
  print '(I0,A,I0,A,I0)', rank, ': got ', in(2), ' count ', number

  x = rank + 0.25d0
  call MPI_Iallreduce(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm, request)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(request, flag, MPI_STATUS_IGNORE)
  end do
  print '(I0,A,F8.3)', rank, ': iallreduce ', y
  call MPI_Barrier(comm)
  call MPI_Ibarrier(comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)

  call MPI_Send_init(out, 2, MPI_INTEGER, right, 3, comm, requests(1))
  call MPI_Recv_init(in, 2, MPI_INTEGER, left, 3, comm, requests(2))
  do i = 1, 3
    out = out + i
    call MPI_Start(requests(2))
    call MPI_Start(requests(1))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    print '(I0,A,I0,1X,I0)', rank, ': persistent ', in
  end do
  call MPI_Request_free(requests(1))
  call MPI_Request_free(requests(2))

  call MPI_Isend(out, 2, MPI_INTEGER, right, 4, comm, request)
  call MPI_Mprobe(left, 4, comm, message, status)
  call MPI_Mrecv(in, 2, MPI_INTEGER, message, status)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  print '(I0,A,I0)', rank, ': mprobe ', status%MPI_SOURCE
  call MPI_Irecv(in, 2, MPI_INTEGER, left, 77, comm, request)
  call MPI_Cancel(request)
  call MPI_Wait(request, status)
  call MPI_Test_cancelled(status, flag)
  print '(I0,A,L1)', rank, ': cancelled ', flag

  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call MPI_Comm_get_errhandler(comm, handler)
  print '(I0,A,L1)', rank, ': handler ', handler == MPI_ERRORS_RETURN
  call MPI_Comm_free(comm)
  call MPI_Finalize()
  call MPI_Finalized(flag)
  print '(I0,A,L1)', rank, ': finalized ', flag
end program
