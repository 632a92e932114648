//go:build !rdmadebug && !race

package overwrite

// On says that memory is overwritten.
const On = false

// Bytes overwrites b, which was given back.
func Bytes([]byte) {}

// Check panics if b, which was overwritten, was written since. what says whose it is.
func Check([]byte, string) {}
