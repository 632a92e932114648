package tables

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// A peer has actors spawned, and stops them. Grants of stopped actors make room, within GrantBytes.
func TestGrantsOfSpawned(t *testing.T) {
	sys := actor.NewActorSystem()
	defer sys.Shutdown()
	var g Grants
	long := strings.Repeat("x", 32<<10)
	for _, alive := range []bool{false, true} {
		ok, want := true, !alive
		for i := range 2 * GrantBytes / len(long) {
			ok = g.Add(fmt.Sprint(alive, i, long), sys.DeadLetter, 1, func(string) bool { return alive }) && ok
			if g.bytes > GrantBytes {
				t.Fatalf("alive %v: %d bytes after %d", alive, g.bytes, i)
			}
		}
		if ok != want {
			t.Errorf("alive %v: all are granted: %v", alive, ok)
		}
	}
}
