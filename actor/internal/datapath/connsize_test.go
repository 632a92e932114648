package datapath

import (
	"testing"
	"unsafe"
)

// A connection stays in the allocator's class of 960 bytes, of which 8 are the allocator's own: the
// next class has 1,024, and a process may have a hundred thousand idle connections.
func TestConnectionSize(t *testing.T) {
	if size := unsafe.Sizeof(Conn{}); size > 960-8 {
		t.Errorf("a connection has %d bytes, want at most %d", size, 960-8)
	}
}
