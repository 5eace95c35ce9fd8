! SPDX-License-Identifier: BSD-3-Clause
! Fortran 90 with `use mpi`: a communicator of its own, derived types, nonblocking collectives, user operation.
module operation
  implicit none
contains
  subroutine larger_magnitude(in, inout, count, datatype)
    integer :: count, datatype
    double precision :: in(count), inout(count)
    integer :: i
    do i = 1, count
      if (abs(in(i)) > abs(inout(i))) inout(i) = in(i)
    end do
  end subroutine
end module

program f90
  use mpi
  use operation
  implicit none
  integer :: ierr, rank, n, comm, half, strided, op, request, left, right, i, members, provided
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), indices(2), completed, finished
  double precision :: grid(4, 4), column(4), x(3), y(3)

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, n, ierr)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  do i = 1, 16
    grid(mod(i - 1, 4) + 1, (i - 1) / 4 + 1) = i + 100 * rank
  end do
  call MPI_Type_vector(4, 1, 4, MPI_DOUBLE_PRECISION, strided, ierr)
  call MPI_Type_commit(strided, ierr)
  call MPI_Irecv(column, 4, MPI_DOUBLE_PRECISION, left, 5, comm, requests(1), ierr)
  call MPI_Isend(grid(2, 1), 1, strided, right, 5, comm, requests(2), ierr)
  call MPI_Type_free(strided, ierr)
  finished = 0
  do while (finished < 2)
    call MPI_Waitsome(2, requests, completed, indices, statuses, ierr)
    finished = finished + completed
  end do
  print '(I0,A,4F8.1)', rank, ': row ', column

  call MPI_Op_create(larger_magnitude, .true., op, ierr)
  x = [dble(rank), -dble(rank) - 1, 0.5d0]
  call MPI_Iallreduce(x, y, 3, MPI_DOUBLE_PRECISION, op, comm, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  print '(I0,A,3F6.1)', rank, ': largest ', y
  call MPI_Op_free(op, ierr)

  call MPI_Comm_split(comm, mod(rank, 2), rank, half, ierr)
  call MPI_Comm_size(half, members, ierr)
  call MPI_Ibarrier(half, request, ierr)
  call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
  print '(I0,A,I0)', rank, ': half of ', members
  call MPI_Comm_free(half, ierr)
  call MPI_Comm_free(comm, ierr)
  call MPI_Finalize(ierr)
end program
