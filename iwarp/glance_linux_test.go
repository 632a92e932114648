package iwarp

import "testing"

// TestGlance: Glance reports whether it has read something. If it always did, a polling loop would
// ask the kernel less often about other connections.
func TestGlance(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 1)
	c := server.in.ids[p.sh].conn
	for range 3 {
		if c.Glance() {
			t.Error("worked, and the peer has sent nothing")
		}
	}
	p.cq.send(1, "a message")
	turns(t, "the message", c.Glance, client)
	if len(server.wcs) != 1 {
		t.Errorf("%d completions, want the message", len(server.wcs))
	}
}
