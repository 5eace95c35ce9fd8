// SPDX-License-Identifier: BSD-3-Clause
// x86-64 (System V): arguments in rdi rsi rdx rcx r8 r9, rax (vector count of variadic calls), xmm0-7. r11 is scratch.

.macro jump_through_slot index
    jmpq *(vecmpi_entry_slots + 8 * \index)(%rip)
.endm

.macro first_call index
    movl $\index, %r11d
    jmp .Lbind_first_call
.endm

.macro bind_first_call
    .balign 16
    .type .Lbind_first_call, %function
.Lbind_first_call:
    .cfi_startproc
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $192, %rsp
    movups %xmm0, 0(%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movq %rdi, 128(%rsp)
    movq %rsi, 136(%rsp)
    movq %rdx, 144(%rsp)
    movq %rcx, 152(%rsp)
    movq %r8, 160(%rsp)
    movq %r9, 168(%rsp)
    movq %rax, 176(%rsp)
    movq %rdi, %rsi
    movl %r11d, %edi
    call vecmpi_bind_first_call
    movq %rax, %r11
    movups 0(%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    movq 128(%rsp), %rdi
    movq 136(%rsp), %rsi
    movq 144(%rsp), %rdx
    movq 152(%rsp), %rcx
    movq 160(%rsp), %r8
    movq 168(%rsp), %r9
    movq 176(%rsp), %rax
    leave
    .cfi_def_cfa %rsp, 8
    jmpq *%r11
    .cfi_endproc
.endm
