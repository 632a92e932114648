#include "textflag.h"

// The address of trampoline, for cgocall.
DATA ·trampolineAddr(SB)/8, $·trampoline(SB)
GLOBL ·trampolineAddr(SB), NOPTR|RODATA, $8

// trampoline makes the calls of a crossing, whose address is its C argument. It runs on a thread's
// stack with C's calling convention: BX, BP and R12 to R15 belong to the caller.
TEXT ·trampoline(SB), NOSPLIT|NOFRAME, $0
	PUSHQ BP
	MOVQ  SP, BP
	PUSHQ BX
	PUSHQ R12
	PUSHQ R13
	PUSHQ R14                  // the stack is aligned to 16 bytes again
	MOVQ  DI, BX
	MOVQ  0(BX), R12           // how many calls
	LEAQ  32(BX), R13          // the first of them
	XORL  AX, AX
	MOVQ  8(BX), R10
	CALL  R10                  // __errno_location
	MOVQ  AX, R14
	MOVL  $0, (R14)

next:
	TESTQ R12, R12
	JE    done
	MOVQ  8(R13), DI
	MOVQ  16(R13), SI
	MOVQ  24(R13), DX
	MOVQ  32(R13), CX
	MOVQ  40(R13), R8
	MOVQ  48(R13), R9
	MOVQ  0(R13), R10
	XORL  AX, AX               // no floating point arguments
	CALL  R10
	MOVQ  AX, 56(R13)
	ADDQ  $64, R13
	DECQ  R12
	CMPQ  R12, 24(BX)          // was it the one whose result may end the crossing?
	JNE   next
	TESTL AX, AX
	JLE   next

done:
	MOVL (R14), CX
	MOVQ CX, 16(BX)
	XORL AX, AX
	POPQ R14
	POPQ R13
	POPQ R12
	POPQ BX
	POPQ BP
	RET
