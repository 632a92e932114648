//go:build 386 || arm || mips || mipsle

package actor

// Proto.Actor panics on 32-bit systems when it spawns by name (a hash becomes a negative index),
// so they are refused here.
var _ = rdmactor_needs_a_64_bit_system
