#include "textflag.h"

// A block of 64 bytes is four pairs of 64 bits. Each pair is multiplied by the factors of a
// distance, and the sum of both products stands for it in the block that is so far behind. See
// "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009.

// FOLD moves block A by the distance of K, and adds B. T is overwritten.
#define FOLD(K, A, B, T) \
	VPCLMULQDQ $0x00, K, A, T \
	VPCLMULQDQ $0x11, K, A, A \
	VPTERNLOGQ $0x96, B, T, A

// func fold(crc uint32, p []byte, k *[16]uint64) uint32
TEXT ·fold(SB), NOSPLIT, $0-44
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	MOVQ k+32(FP), DX

	VMOVD     AX, X4
	VPXORQ    (SI), Z4, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	ADDQ      $256, SI
	SUBQ      $256, CX

	// Four blocks at a time.
	VBROADCASTI32X4 (DX), Z16
	CMPQ            CX, $256
	JB              join

four:
	FOLD(Z16, Z0, (SI), Z4)
	FOLD(Z16, Z1, 64(SI), Z5)
	FOLD(Z16, Z2, 128(SI), Z6)
	FOLD(Z16, Z3, 192(SI), Z7)
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  four

	// The first three of the four to the last.
join:
	VBROADCASTI32X4 16(DX), Z17
	VBROADCASTI32X4 32(DX), Z18
	VBROADCASTI32X4 48(DX), Z19
	FOLD(Z17, Z0, Z3, Z4)
	FOLD(Z18, Z1, Z0, Z5)
	FOLD(Z19, Z2, Z1, Z6)
	VMOVDQA64       Z2, Z3

	// One block at a time.
	CMPQ CX, $64
	JB   pairs

one:
	FOLD(Z19, Z3, (SI), Z4)
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JAE  one

	// The first three pairs to the last.
pairs:
	VMOVDQU64     64(DX), Z5
	VPCLMULQDQ    $0x00, Z5, Z3, Z4
	VPCLMULQDQ    $0x11, Z5, Z3, Z5
	VPXORQ        Z4, Z5, Z5
	VEXTRACTI32X4 $3, Z3, X6
	VEXTRACTI64X4 $1, Z5, Y4
	VPXOR         Y4, Y5, Y5
	VEXTRACTI128  $1, Y5, X4
	VPXOR         X4, X5, X5
	VPXOR         X6, X5, X5
	VMOVQ         X5, R8
	VPEXTRQ       $1, X5, R9
	VZEROUPPER

	// That pair, and what is left.
	XORL   AX, AX
	CRC32Q R8, AX
	CRC32Q R9, AX
	CMPQ   CX, $8
	JB     bytes

words:
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	CMPQ   CX, $8
	JAE    words

bytes:
	TESTQ  CX, CX
	JZ     done
	CRC32B (SI), AX
	INCQ   SI
	DECQ   CX
	JMP    bytes

done:
	MOVL AX, ret+40(FP)
	RET
