package iwarp

import (
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// TestMover: each side counts the bytes that the other has sent, and how much of its output the
// other's TCP has acknowledged.
func TestMover(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 8)
	c, s := p.cq.QP.(verbs.Mover), p.sq.QP.(verbs.Mover)
	agree := func(what string) {
		t.Helper()
		turns(t, what, func() bool { return c.Went() == s.Came() && s.Went() == c.Came() }, client, server)
	}
	agree("the set-up is counted on both sides")
	before := s.Came()
	p.cq.send(1, strings.Repeat("x", 4000))
	turns(t, "the message", func() bool { return len(server.wcs) == 1 }, client, server)
	if n := s.Came() - before; n < 4000 || n > 4200 {
		t.Errorf("%d bytes have come, for a message of 4000", n)
	}
	agree("the message is")
	if err := p.cq.Destroy(); err != nil {
		t.Fatal(err)
	}
	if c.Came() != 0 || c.Went() != 0 {
		t.Error("a queue pair that is destroyed moves")
	}
}
