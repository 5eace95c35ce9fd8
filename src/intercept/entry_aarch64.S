// SPDX-License-Identifier: BSD-3-Clause
// aarch64 (AAPCS64): arguments in x0-x7, x8 (result address), q0-q7. x16 and x17 are scratch between functions.

// The acquire load pairs with the release store of the slot: what it leads to sees the real functions.
.macro jump_through_slot index
    adrp x16, vecmpi_entry_slots + 8 * \index
    add x16, x16, :lo12:(vecmpi_entry_slots + 8 * \index)
    ldar x16, [x16]
    br x16
.endm

.macro first_call index
    mov w17, #\index
    b .Lbind_first_call
.endm

.macro bind_first_call
    .balign 16
    .type .Lbind_first_call, %function
.Lbind_first_call:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset 29, -224
    .cfi_offset 30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov x1, x0
    mov w0, w17
    bl vecmpi_bind_first_call
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_restore 30
    .cfi_restore 29
    .cfi_def_cfa_offset 0
    br x16
    .cfi_endproc
.endm
