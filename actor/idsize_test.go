package actor

import (
	"testing"
	"unsafe"
)

// An identifier stays in the allocator's class of 512 bytes: the next class has 576, and a process
// may have a hundred thousand idle connections.
func TestIdentifierSize(t *testing.T) {
	if size := unsafe.Sizeof(ident{}); size > 512 {
		t.Errorf("an identifier has %d bytes, want at most 512", size)
	}
}
