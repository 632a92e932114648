package remoting

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// The names that a link remembers are bounded in bytes, however long they are, and in number.
func TestRememberedNames(t *testing.T) {
	for _, long := range []int{1, frame.MaxName - 10} {
		h := &host{name: "n"}
		h.rules.Store(&rules{})
		in := &newLink(newRoster(h), newPeer(h, 1, 1, "b")).in
		pad := strings.Repeat("n", long)
		for i := range 3 * remembered {
			name := fmt.Sprint(i, pad)
			if to := in.targetOf(name); to != in.targetOf(name) {
				t.Fatal("the latest target is forgotten")
			}
			s := frame.PID{Address: pad, ID: name}
			if from := in.senderPID(&s); from != in.senderPID(&s) {
				t.Fatal("the latest sender is forgotten")
			}
			bytes := 0
			for id := range in.targets {
				bytes += len(id)
			}
			for s := range in.senders {
				bytes += len(s.ID) + len(s.Address)
			}
			if n := len(in.targets) + len(in.senders); bytes > 2*rememberedBytes || n > 2*remembered {
				t.Fatalf("%d names of %d bytes", n, bytes)
			}
		}
	}
}
