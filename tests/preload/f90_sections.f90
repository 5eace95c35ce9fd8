! SPDX-License-Identifier: BSD-3-Clause
! Sections of MPI_Pcontrol in Fortran 90: seven barriers of each rank are in what a report counts.
program sections
  use mpi
  implicit none
  integer :: ierr

  call MPI_Init(ierr)
  call barriers(2)
  call MPI_Pcontrol(2)
  call barriers(3)
  call MPI_Pcontrol(0)
  call barriers(5)
  call MPI_Pcontrol(1)
  call barriers(4)
  call MPI_Pcontrol(0)
  call barriers(1)
  call MPI_Finalize(ierr)
contains
  subroutine barriers(times)
    integer, intent(in) :: times
    integer :: i
    do i = 1, times
      call MPI_Barrier(MPI_COMM_WORLD, ierr)
    end do
  end subroutine
end program
