package hostlimits

import (
	"os"
	"testing"
)

// TestThisMachine: something limits the threads of every process.
func TestThisMachine(t *testing.T) {
	if l, ok := Threads(os.DirFS("/")); !ok || l.Max == 0 || l.Used == 0 {
		t.Errorf("%v, %v", l, ok)
	}
}
