package actor

import (
	"testing"
	"unsafe"
)

// An identifier stays in the allocator's class of 704 bytes, of which 8 are the allocator's own:
// the next class has 768, and a process may have a hundred thousand idle connections.
func TestIdentifierSize(t *testing.T) {
	if size := unsafe.Sizeof(ident{}); size > 704-8 {
		t.Errorf("an identifier has %d bytes, want at most %d", size, 704-8)
	}
}
