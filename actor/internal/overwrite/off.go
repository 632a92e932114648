//go:build !rdmadebug && !race

package overwrite

// On reports whether memory is overwritten.
const On = false

// Bytes overwrites b, which was released.
func Bytes([]byte) {}

// Check panics if b, which was overwritten, was written since. what names the owner.
func Check([]byte, string) {}
