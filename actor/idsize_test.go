package actor

import (
	"testing"
	"unsafe"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
)

// An identifier and its connection stay in the allocator's classes of 512 and 896 bytes, of which 8
// of the latter are the allocator's own: the next classes have 64 and 128 bytes more, and a process
// may have a hundred thousand idle connections.
func TestIdentifierSize(t *testing.T) {
	if size := unsafe.Sizeof(ident{}); size > 512 {
		t.Errorf("an identifier has %d bytes, want at most 512", size)
	}
	if size := unsafe.Sizeof(datapath.Conn{}); size > 896-8 {
		t.Errorf("a connection has %d bytes, want at most %d", size, 896-8)
	}
}
