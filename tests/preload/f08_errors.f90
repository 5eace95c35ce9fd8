! SPDX-License-Identifier: BSD-3-Clause
! Error handlers of Fortran 2008 with `use mpi_f08`: they get objects, and call MPI.
module handlers
  use mpi_f08
  implicit none
  type(MPI_Comm) :: expected_comm
  integer :: calls = 0
contains
  subroutine of_communicator(comm, code)
    type(MPI_Comm) :: comm
    integer :: code
    integer :: length, in, out, class
    character(len=MPI_MAX_OBJECT_NAME) :: name
    out = 4
    call MPI_Comm_get_name(comm, name, length)
    call MPI_Error_class(code, class)
    call MPI_Sendrecv(out, 1, MPI_INTEGER, 0, 0, in, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, &
      MPI_STATUS_IGNORE)
    calls = calls + in
    print '(A,L1,1X,A,I0)', 'handler ', comm == expected_comm, name(1:length), class
  end subroutine
end module

program f08_errors
  use mpi_f08
  use handlers
  implicit none
  integer :: ierr, rank, class, i
  type(MPI_Errhandler) :: handler
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, expected_comm)
  call MPI_Comm_set_name(expected_comm, 'other')
  do i = 1, 200
    call MPI_Comm_create_errhandler(of_communicator, handler)
    call MPI_Comm_set_errhandler(expected_comm, handler)
    call MPI_Errhandler_free(handler)
  end do
  call MPI_Send(rank, 1, MPI_INTEGER, 99, 0, expected_comm, ierr)
  call MPI_Error_class(ierr, class)
  print '(I0,A,I0)', rank, ' send ', class
  call MPI_Isend(rank, 1, MPI_INTEGER, 0, -9, expected_comm, request, ierr)
  call MPI_Comm_call_errhandler(expected_comm, MPI_ERR_OTHER)
  print '(I0,A,I0)', rank, ' calls ', calls
  call MPI_Comm_free(expected_comm)
  call MPI_Finalize()
end program
