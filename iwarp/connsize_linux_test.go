package iwarp

import (
	"testing"
	"unsafe"
)

// A connection stays in the allocator's class of 896 bytes, of which 8 are the allocator's own: the
// next class has 1,024, and a process may have a hundred thousand idle connections.
func TestConnectionSize(t *testing.T) {
	if size := unsafe.Sizeof(conn{}); size > 896-8 {
		t.Errorf("a connection has %d bytes, want at most %d", size, 896-8)
	}
}
