! SPDX-License-Identifier: BSD-3-Clause
! Error handlers of Fortran 90 with `use mpi`: they get handle and code by reference, and call MPI.
module handlers
  use mpi
  implicit none
  integer :: expected_comm, expected_win, calls = 0
contains
  subroutine of_communicator(comm, code)
    integer :: comm, code
    integer :: length, ierr, in, out, class
    character(len=MPI_MAX_OBJECT_NAME) :: name
    out = 4
    call MPI_Comm_get_name(comm, name, length, ierr)
    call MPI_Error_class(code, class, ierr)
    call MPI_Sendrecv(out, 1, MPI_INTEGER, 0, 0, in, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, &
      MPI_STATUS_IGNORE, ierr)
    calls = calls + in
    print '(A,L1,1X,A,I0)', 'handler ', comm == expected_comm, name(1:length), class
  end subroutine
  subroutine of_window(win, code)
    integer :: win, code
    integer :: class, ierr
    call MPI_Error_class(code, class, ierr)
    print '(A,L1,I0)', 'window handler ', win == expected_win, class
  end subroutine
end module

program f90_errors
  use mpi
  use handlers
  implicit none
  integer :: ierr, rank, handler, request, class, memory(2), i
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, expected_comm, ierr)
  call MPI_Comm_set_name(expected_comm, 'other', ierr)
  do i = 1, 200
    call MPI_Comm_create_errhandler(of_communicator, handler, ierr)
    call MPI_Comm_set_errhandler(expected_comm, handler, ierr)
    call MPI_Errhandler_free(handler, ierr)
  end do
  call MPI_Send(rank, 1, MPI_INTEGER, 99, 0, expected_comm, ierr)
  call MPI_Error_class(ierr, class, ierr)
  print '(I0,A,I0)', rank, ' send ', class
  call MPI_Isend(rank, 1, MPI_INTEGER, 0, -9, expected_comm, request, ierr)
  call MPI_Comm_call_errhandler(expected_comm, MPI_ERR_OTHER, ierr)
  print '(I0,A,I0)', rank, ' calls ', calls

  call MPI_Win_create(memory, int(8, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, &
    expected_win, ierr)
  call MPI_Win_create_errhandler(of_window, handler, ierr)
  call MPI_Win_set_errhandler(expected_win, handler, ierr)
  call MPI_Win_fence(0, expected_win, ierr)
  call MPI_Put(rank, 1, MPI_INTEGER, 99, int(0, MPI_ADDRESS_KIND), 1, MPI_INTEGER, expected_win, ierr)
  call MPI_Win_fence(0, expected_win, ierr)
  call MPI_Win_free(expected_win, ierr)
  call MPI_Comm_free(expected_comm, ierr)
  call MPI_Finalize(ierr)
end program
