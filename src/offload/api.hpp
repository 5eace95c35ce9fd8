// SPDX-License-Identifier: BSD-3-Clause
// Door of src/offload: the only place that issues MPI operations and completes requests.
//
// Glossary
//   operation       one nonblocking call with its arguments, ready to be issued
//   slot            storage of one queued operation: arguments, status, completion flag
//   ending          what is left to do of a message when the library has completed it
//   virtual request the MPI_Request that the program gets for a slot; a value MPICH never produces
//   engine          queue, window of active requests and the loop over them; one owner at a time
//   owner           the thread that has the engine: the offload thread, or a program thread in a
//   call job             work of many operations that the engine carries on until it is done twin
//   the nonblocking form of a blocking call, with which the engine serves it
#pragma once

#include "base/api.hpp"
#include "library/api.hpp"
#include "offload/api/arguments.hpp"
#include "offload/api/arithmetic.hpp"
#include "offload/api/communicators.hpp"
#include "offload/api/direct_calls.hpp"
#include "offload/api/jobs.hpp"
#include "offload/api/life.hpp"
#include "offload/api/operations.hpp"
#include "offload/api/requests.hpp"
#include "offload/api/transfers.hpp"
#include "offload/api/waiting.hpp"
