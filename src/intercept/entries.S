// SPDX-License-Identifier: BSD-3-Clause
// The entries MPI_X and PMPI_X: a jump through a slot, whatever the signature.
//
// entry i:       jump to what slot i holds; 16 bytes each
// first call i:  number of the entry in a scratch register, jump to bind_first_call; 16 bytes each
// slot i:        at load the address of first call i
// bind_first_call saves every register that can carry an argument, asks vecmpi_bind_first_call(number, first argument)
// where to jump, restores them and jumps there, so that the first call too reaches its target as the program made it.

#if defined(__x86_64__)
#include "entry_x86_64.S"
#elif defined(__aarch64__)
#include "entry_aarch64.S"
#else
#error "vecmpi has entry points for x86-64 and aarch64 only"
#endif

// The next entry's number.
.set next_entry, 0

.macro entry name
    .text
    .globl \name
    .type \name, %function
    .balign 16
\name:
    jump_through_slot next_entry
    .size \name, . - \name

    .section .text.vecmpi_first_calls, "ax", %progbits
    .balign 16
.Lfirst_call_\@:
    first_call next_entry

    .section .data.rel.local.vecmpi_entry_slots, "aw", %progbits
    .quad .Lfirst_call_\@
    .set next_entry, next_entry + 1
.endm

.macro entries_of name, profiling_name
    entry \name
    entry \profiling_name
.endm

// Like a first call for ever: what is bound to it tells vecmpi_bind_first_call() of each call, with its first argument.
.macro observer name
    .text
    .globl \name
    .hidden \name
    .type \name, %function
    .balign 16
\name:
    first_call next_entry
    .size \name, . - \name
.endm

.macro begin_entries
    .section .text.vecmpi_first_calls, "ax", %progbits
    .balign 16
    .globl vecmpi_first_calls
    .hidden vecmpi_first_calls
vecmpi_first_calls:

    .section .data.rel.local.vecmpi_entry_slots, "aw", %progbits
    .balign 64
    .globl vecmpi_entry_slots
    .hidden vecmpi_entry_slots
    .type vecmpi_entry_slots, %object
vecmpi_entry_slots:

    .text
    bind_first_call
    .balign 16
    .globl vecmpi_entries
    .hidden vecmpi_entries
vecmpi_entries:
.endm

.macro end_entries
    .section .data.rel.local.vecmpi_entry_slots, "aw", %progbits
    .size vecmpi_entry_slots, . - vecmpi_entry_slots

    .section .note.GNU-stack, "", %progbits
.endm

#define VECMPI_CALL(call, name) entries_of name, P##name

begin_entries
#include "library/api/mpi_calls.def"
observer vecmpi_pcontrol_entry
end_entries
