C SPDX-License-Identifier: BSD-3-Clause
C Fortran 77 with mpif.h: point-to-point, collectives, requests in arrays, in place. Prints the results.
      program f77
      implicit none
      include 'mpif.h'
      integer ierr, rank, n, left, right, i, flag, cnt, index
      integer req(4), st(MPI_STATUS_SIZE), sts(MPI_STATUS_SIZE, 4)
      integer out(2), in(2), total, buf(3)
      logical done
      double precision x, y
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      left = mod(rank + n - 1, n)
      right = mod(rank + 1, n)
      out(1) = rank
      out(2) = rank * 10
      call MPI_IRECV(in(1), 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD,
     &               req(1), ierr)
      call MPI_IRECV(in(2), 1, MPI_INTEGER, left, 2, MPI_COMM_WORLD,
     &               req(2), ierr)
      call MPI_ISEND(out(1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD,
     &               req(3), ierr)
      call MPI_ISSEND(out(2), 1, MPI_INTEGER, right, 2, MPI_COMM_WORLD,
     &               req(4), ierr)
      call MPI_WAITALL(4, req, sts, ierr)
      print '(I0,A,I0,1X,I0,A,I0,A,L1)', rank, ': got ', in(1), in(2),
     &      ' from ', sts(MPI_SOURCE, 1), ' null ',
     &      req(1) .eq. MPI_REQUEST_NULL
      call MPI_IRECV(in, 2, MPI_INTEGER, left, 3, MPI_COMM_WORLD,
     &               req(1), ierr)
      call MPI_SEND(out, 2, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierr)
      done = .false.
      do while (.not. done)
          call MPI_TEST(req(1), done, st, ierr)
      end do
      call MPI_GET_COUNT(st, MPI_INTEGER, cnt, ierr)
      print '(I0,A,I0)', rank, ': tested, count ', cnt
      x = rank + 0.5d0
      call MPI_ALLREDUCE(x, y, 1, MPI_DOUBLE_PRECISION, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      print '(I0,A,F8.3)', rank, ': allreduce ', y
      call MPI_ALLREDUCE(MPI_IN_PLACE, x, 1, MPI_DOUBLE_PRECISION,
     &                   MPI_MAX, MPI_COMM_WORLD, ierr)
      print '(I0,A,F8.3)', rank, ': in place ', x
      total = rank
      call MPI_BCAST(total, 1, MPI_INTEGER, n - 1, MPI_COMM_WORLD, ierr)
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      print '(I0,A,I0)', rank, ': bcast ', total
      call MPI_SEND_INIT(buf, 3, MPI_INTEGER, right, 4, MPI_COMM_WORLD,
     &                   req(1), ierr)
      call MPI_RECV_INIT(in, 2, MPI_INTEGER, left, 4, MPI_COMM_WORLD,
     &                   req(2), ierr)
      call MPI_REQUEST_FREE(req(2), ierr)
      call MPI_RECV_INIT(buf, 3, MPI_INTEGER, left, 4, MPI_COMM_WORLD,
     &                   req(2), ierr)
      call MPI_REQUEST_FREE(req(1), ierr)
      call MPI_SEND_INIT(out, 2, MPI_INTEGER, right, 4, MPI_COMM_WORLD,
     &                   req(1), ierr)
      do i = 1, 3
          out(1) = rank + i
          call MPI_STARTALL(2, req, ierr)
          call MPI_WAITANY(2, req, index, st, ierr)
          call MPI_WAITANY(2, req, index, MPI_STATUS_IGNORE, ierr)
          print '(I0,A,I0)', rank, ': persistent ', buf(1)
      end do
      call MPI_REQUEST_FREE(req(1), ierr)
      call MPI_REQUEST_FREE(req(2), ierr)
      call MPI_PROBE(MPI_PROC_NULL, 1, MPI_COMM_WORLD, st, ierr)
      print '(I0,A,L1)', rank, ': probe ',
     &      st(MPI_SOURCE) .eq. MPI_PROC_NULL
      call MPI_FINALIZE(ierr)
      call MPI_FINALIZED(done, ierr)
      print '(I0,A,L1)', rank, ': finalized ', done
      end
