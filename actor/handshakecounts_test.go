package actor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
)

// totals returns what both sides have counted of their secured connections.
func (w *world) totals() (near, far SecurityTotals) {
	settle()
	return w.rt.Loops()[0].Security, w.far.Loops()[0].Security
}

// outcome returns counts in a line: "1 begun, 1 completed, 2 crowded".
func outcome(h Handshakes) string {
	s := fmt.Sprintf("%d begun", h.Begun)
	if h.Completed > 0 {
		s += fmt.Sprintf(", %d completed", h.Completed)
	}
	for f := range NumHandshakeFailures {
		if h.Failed[f] > 0 {
			s += fmt.Sprintf(", %d %v", h.Failed[f], f)
		}
	}
	return s
}

// changes makes an attacker modify the nth message of a kind.
func changes(w *world, kind cmidtest.Message, nth int) {
	n := 0
	w.f.Intercept(func(m cmidtest.Message, b []byte) []byte {
		if m == kind {
			if n++; n == nth {
				b[len(b)-1] ^= 1
			}
		}
		return b
	})
}

// Each handshake is counted once on each side, by its outcome, and the flight recorders have its
// steps.
func TestHandshakesAreCounted(t *testing.T) {
	with := func(change func(*Security)) func(w *world) IDConfig {
		return func(w *world) IDConfig {
			c := secured(w)
			change(c.Security)
			return c
		}
	}
	secure := with(func(*Security) {})
	insecure := func(*world) IDConfig { return IDConfig{} }
	another := with(func(s *Security) { _ = s.Keys.Use(credential("bob", 1)) })
	refuses := with(func(s *Security) {
		s.Authorize = func(*ConnectRequest) (PeerLimits, *Reject) { return PeerLimits{}, &Reject{} }
	})
	answers := func(w *world, server *probe, cmd Command) {
		_, s := next[*ConnectRequest](server)
		server.send(s, cmd)
	}
	none := func(*world, *probe) {}
	for name, tt := range map[string]struct {
		server, client    func(*world) IDConfig
		before            func(w *world)
		meanwhile         func(w *world, server *probe)
		dialled, answered string
		notes             []string // of both sides
	}{
		"accepted": {secure, secure, nil, func(w *world, s *probe) { answers(w, s, &Accept{}) }, "1 begun, 1 completed", "1 begun, 1 completed", []string{
			"request sent", "reply received", "accepted by the peer", "request received", "reply sent", "peer authenticated", "authorized",
		}},
		"rejected": {
			secure, secure, nil, func(w *world, s *probe) { answers(w, s, &Reject{}) }, "1 begun, 1 completed", "1 begun, 1 completed",
			[]string{"rejected by the peer"},
		},
		"unknown key":           {secure, another, nil, none, "1 begun, 1 unknown key", "1 begun, 1 unknown key", []string{"failed: unknown key"}},
		"insecure client":       {secure, insecure, nil, none, "0 begun", "1 begun, 1 mode mismatch", []string{"failed: mode mismatch"}},
		"insecure server":       {insecure, secure, nil, none, "1 begun, 1 mode mismatch", "1 begun, 1 mode mismatch", nil},
		"not authorized":        {refuses, secure, nil, none, "1 begun, 1 completed", "1 begun, 1 not authorized", []string{"failed: not authorized"}},
		"request changed":       {secure, secure, func(w *world) { changes(w, cmidtest.MsgREQ, 1) }, none, "1 begun, 1 unknown key", "1 begun, 1 unknown key", nil},
		"reply changed":         {secure, secure, func(w *world) { changes(w, cmidtest.MsgREP, 1) }, none, "1 begun, 1 tampered", "1 begun, 1 lost", []string{"failed: tampered"}},
		"first record changed":  {secure, secure, func(w *world) { changes(w, cmidtest.MsgSend, 1) }, none, "1 begun, 1 lost", "1 begun, 1 tampered", nil},
		"second record changed": {secure, secure, func(w *world) { changes(w, cmidtest.MsgSend, 2) }, func(w *world, s *probe) { answers(w, s, &Accept{}) }, "1 begun, 1 tampered", "1 begun, 1 completed", nil},
		"nobody listens":        {nil, secure, nil, none, "1 begun, 1 lost", "0 begun", nil},
		"the owner is late":     {secure, secure, nil, func(_ *world, s *probe) { next[*ConnectRequest](s) }, "1 begun, 1 completed", "1 begun, 1 completed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				if tt.before != nil {
					tt.before(w)
				}
				server, client := w.farProbe(), w.probe()
				if tt.server != nil {
					w.listen(server, tt.server(w))
				}
				c := w.rt.CreateID(client.pid, tt.client(w))
				client.send(c, &Dial{Addr: there + ":7471"})
				tt.meanwhile(w, server)
				time.Sleep(30 * time.Second)
				client.send(c, &DestroyID{})
				until[*Closed](client)
				near, far := w.totals()
				if got := outcome(near.Dialled); got != tt.dialled {
					w.Errorf("dialled: %s, want %s", got, tt.dialled)
				}
				if got := outcome(far.Answered); got != tt.answered {
					w.Errorf("answered: %s, want %s", got, tt.answered)
				}
				notes := w.rt.Flight()[0].String() + w.far.Flight()[0].String()
				for _, note := range tt.notes {
					if !strings.Contains(notes, " handshake  "+note) {
						w.Errorf("the flight recorders lack %q:\n%s", note, notes)
					}
				}
				for _, r := range slices.Concat(w.rt.Flight()[0].Records, w.far.Flight()[0].Records) {
					if r.Kind == FlightHandshake && r.Errno != 0 && !strings.HasPrefix(r.What, "failed: ") {
						w.Errorf("%q has errno %d", r.What, r.Errno)
					}
				}
				server.receiveAll()
			})
		})
	}
}

// receiveAll takes the probe's remaining messages.
func (p *probe) receiveAll() {
	settle()
	for len(p.got) > 0 {
		<-p.got
	}
}

// A peer that begins a handshake and does not go on has timed out, one beyond Limits.Handshakes
// was crowded out.
func TestHandshakesTimeOut(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, mallory := w.farProbe(), w.probe()
		w.listen(server, secured(w))
		b := wire.Hello{Features: uint8(secure.FeaturePSK), Credits: 2, Eager: kib, MaxMessage: kib}.Put(make([]byte, secure.HintLen+secure.PSKRequestLen))
		alice := credential("alice", 1)
		_, data, err := secure.NewPSKClient(&alice, secure.AES256GCM, secure.Binding{}, secure.Hello(b))
		if err != nil {
			w.Fatal(err)
		}
		copy(b[wire.HelloLen+secure.HintLen:], data[:])
		for range 5 {
			mallory.send(w.rt.CreateID(mallory.pid, IDConfig{Raw: true}), &Dial{Addr: there + ":7471", PrivateData: b})
		}
		time.Sleep(30 * time.Second)
		mallory.receiveAll()
		_, far := w.totals()
		if h := far.Answered; h.Begun != 5 || h.Failed[FailedTimedOut] == 0 || h.Failed[FailedTimedOut]+h.Failed[FailedCrowded] != 5 {
			w.Errorf("answered: %s", outcome(h))
		}
	}, Config{Limits: Limits{Handshakes: 8}})
}

// Key updates of both sides are counted, and connections that were tampered with, also when they
// have ended.
func TestSecuredConnectionsAreCounted(t *testing.T) {
	onFlavors(t, func(w *world) {
		cfg := secured(w)
		cfg.rekey = 1500
		p := w.connect(cfg)
		for range 2000 {
			p.client.send(p.c, NewSend([]byte("hello")))
			p.server.any()
		}
		settle()
		for _, rt := range []*Runtime{w.rt, w.far} {
			for _, i := range rt.Inspect() {
				if i.Credits.Receive == 0 {
					continue // a listener
				}
				if i.Mode != PSK || i.Security == "" || i.Identity != "alice" || (i.KeyUpdates == 1) == (i.PeerKeyUpdates == 1) {
					w.Errorf("an identifier has %v, %q, %q, %d and %d key updates", i.Mode, i.Security, i.Identity, i.KeyUpdates, i.PeerKeyUpdates)
				}
			}
		}
		near, far := w.totals()
		if near.Secured != 1 || far.Secured != 1 || near.KeyUpdates != 1 || far.PeerKeyUpdates != 1 {
			w.Errorf("%+v and %+v", near, far)
		}
		changes(w, cmidtest.MsgSend, 1)
		p.client.send(p.c, NewSend([]byte("changed")))
		end := until[*Closed](p.server)
		var tampered *TamperedError
		if err := end[len(end)-1].msg.(*Closed).Err; !errors.As(err, &tampered) {
			w.Errorf("the end: %v", err)
		}
		until[*Closed](p.client)
		near, far = w.totals()
		if near.Secured != 0 || far.Secured != 0 || near.KeyUpdates != 1 || far.PeerKeyUpdates != 1 || far.Tampered != 1 || near.Tampered != 0 {
			w.Errorf("after the end: %+v and %+v", near, far)
		}
	})
}

// Each failure has a distinct text.
func TestHandshakeFailureStrings(t *testing.T) {
	seen := make(map[string]bool)
	for f := range NumHandshakeFailures + 1 {
		if s := f.String(); s == "" || seen[s] {
			t.Errorf("%d is %q", f, s)
		} else if seen[s] = true; f < NumHandshakeFailures && handshakeNotes[f] != "failed: "+s {
			t.Errorf("%q is noted as %q", s, handshakeNotes[f])
		}
	}
}
