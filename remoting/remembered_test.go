package remoting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// What a link remembers of names is bounded in bytes, however long they are, and in number.
func TestRememberedNames(t *testing.T) {
	for _, long := range []int{1, frame.MaxName - 10} {
		n := &Node{name: "n"}
		n.rules.Store(&rules{})
		l := &link{n: n, p: newPeer(n, 1, "b")}
		pad := strings.Repeat("n", long)
		for i := range 3 * remembered {
			name := fmt.Sprint(i, pad)
			if to := l.target(name); to != l.target(name) {
				t.Fatal("the latest target is forgotten")
			}
			s := frame.PID{Address: pad, ID: name}
			if from := l.sender(&s); from != l.sender(&s) {
				t.Fatal("the latest sender is forgotten")
			}
			bytes := 0
			for id := range l.in.targets {
				bytes += len(id)
			}
			for s := range l.in.senders {
				bytes += len(s.ID) + len(s.Address)
			}
			if n := len(l.in.targets) + len(l.in.senders); bytes > 2*rememberedBytes || n > 2*remembered {
				t.Fatalf("%d names of %d bytes", n, bytes)
			}
		}
	}
}
