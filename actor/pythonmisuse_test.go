//go:build python

package actor

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// TestPythonMisuses: an illegal message of an authenticated peer ends its connection, with the
// error that the pages specify.
func TestPythonMisuses(t *testing.T) {
	a := startAttack(t)
	a.limit(8 << 20)
	put := func(kind wire.Type, data string) func() {
		return func() { a.p.do("put", "x", does{"type": int(kind), "data": []byte(data)}) }
	}
	offer := func(more does) { a.p.tries("offer", "x", does{"size": 2<<20 + 5}, more) }
	for name, misuse := range map[string]struct {
		do   func()
		want error
	}{
		"a request again":             {put(wire.TypeRequest, "hello"), unix.EPROTO},
		"an accept":                   {put(wire.TypeAccept, "hello"), unix.EPROTO},
		"a reject":                    {put(wire.TypeReject, ""), unix.EPROTO},
		"a type that there is not":    {put(15, ""), unix.EPROTO},
		"a key update too early":      {put(wire.TypeKeyUpdate, ""), unix.EPROTO},
		"a key update with a message": {put(wire.TypeKeyUpdate, "x"), unix.EPROTO},
		"an answer without a probe":   {put(wire.TypeAnswer, ""), unix.EPROTO},
		"an offer of 24 bytes":        {put(wire.TypeOffer, "0123456789abcdef"), unix.EPROTO},
		"an offer again":              {func() { offer(nil); a.large(); offer(does{"step": 0}); a.large(); offer(nil) }, unix.EBADMSG},
		"a segment that is changed":   {func() { offer(does{"flip": 1 << 20}) }, unix.EBADMSG},
		"a tag that is changed":       {func() { offer(does{"flip": 2<<20 + 5 + 47}) }, unix.EBADMSG},
		"a message in clear":          {func() { a.p.do("raw", "x", does{"data": append(make([]byte, 8), "clear"...)}) }, unix.EBADMSG},
	} {
		t.Run(name, func(t *testing.T) {
			a.p.dials(a.owner, a.at, "x", nil)
			misuse.do()
			a.p.do("drained", "x")
			end := until[*Closed](a.owner)
			if k := kinds(end); k != "Disconnected Closed" {
				t.Errorf("the end is reported as %v", end)
			}
			is(t, end[len(end)-1].msg.(*Closed).Err, misuse.want)
		})
	}
	a.honest()
}

// limit makes the listener's later connections accept messages of up to n bytes.
func (a *attack) limit(n int) {
	a.Helper()
	cfg := secured(a)
	cfg.MaxMessage = n
	_, a.at = listen(a.owner, a.rt, "127.0.0.1:0", cfg)
}

// large expects a large message of the peer's.
func (a *attack) large() {
	a.Helper()
	if g := a.owner.any(); g.data != string(numbered(2<<20+5)) {
		a.Fatalf("got %v", g)
	}
}
