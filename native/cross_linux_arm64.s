#include "textflag.h"

// The address of trampoline, for cgocall.
DATA ·trampolineAddr(SB)/8, $·trampoline(SB)
GLOBL ·trampolineAddr(SB), NOPTR|RODATA, $8

// trampoline makes the calls of a crossing, whose address is its C argument. It runs on a thread's
// stack with C's calling convention: R19 to R29 belong to the caller.
TEXT ·trampoline(SB), NOSPLIT|NOFRAME, $0
	SUB  $48, RSP
	STP  (R29, R30), 0(RSP)
	STP  (R19, R20), 16(RSP)
	STP  (R21, R22), 32(RSP)
	MOVD RSP, R29
	MOVD R0, R19
	MOVD 0(R19), R20           // how many calls
	ADD  $32, R19, R21         // the first of them
	MOVD 8(R19), R9
	CALL (R9)                  // __errno_location
	MOVD R0, R22
	MOVW ZR, (R22)

next:
	CBZ  R20, done
	MOVD 8(R21), R0
	MOVD 16(R21), R1
	MOVD 24(R21), R2
	MOVD 32(R21), R3
	MOVD 40(R21), R4
	MOVD 48(R21), R5
	MOVD 0(R21), R9
	CALL (R9)
	MOVD R0, 56(R21)
	ADD  $64, R21
	SUB  $1, R20
	MOVD 24(R19), R9
	CMP  R9, R20               // was it the one whose result may end the crossing?
	BNE  next
	CMPW $0, R0
	BLE  next

done:
	MOVWU (R22), R1
	MOVD  R1, 16(R19)
	MOVD  ZR, R0
	LDP   32(RSP), (R21, R22)
	LDP   16(RSP), (R19, R20)
	LDP   0(RSP), (R29, R30)
	ADD   $48, RSP
	RET
