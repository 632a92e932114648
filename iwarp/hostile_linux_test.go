package iwarp

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/hostile"
	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// sides returns the roles that this side may have in a hostile exchange.
func sides(x *hostile.Exchange) []hostile.Side {
	if x.Side != hostile.Either {
		return []hostile.Side{x.Side}
	}
	return []hostile.Side{hostile.Dials, hostile.Answers}
}

// TestHostile runs every exchange of the table against a listener and against a connecting side,
// with and without CRC. Each ends as in the table, and nothing is left of it. Neither a connection
// that existed before nor a new one to the same listener is affected.
func TestHostile(t *testing.T) {
	a := newArena(t)
	for _, x := range hostile.All() {
		for _, side := range sides(x) {
			for _, crc := range []bool{false, true} {
				if x.Slow || x.CRC && !crc {
					continue
				}
				t.Run(fmt.Sprintf("%s/side %d/CRC %t", x.Name, side, crc), func(t *testing.T) {
					a.on(t)
					got := a.attack(x, side, hostile.Options{CRC: crc})
					a.judge(x, got)
					a.good()
					a.clean()
				})
			}
		}
	}
}

// TestHostileHeap: running the whole table again costs less than 64 bytes of memory for each
// exchange.
func TestHostileHeap(t *testing.T) {
	a := newArena(t)
	pass := func() (heap uint64, n int) {
		for _, x := range hostile.All() {
			for _, side := range sides(x) {
				if !x.Slow {
					a.attack(x, side, hostile.Options{})
					a.clean()
					n++
				}
			}
		}
		return heapNow(), n
	}
	pass()
	before, _ := pass()
	after, n := pass()
	if after > before+uint64(n)*64 {
		t.Errorf("%d exchanges left %d bytes of heap", n, after-before)
	}
}

// heapNow returns the bytes of reachable memory, without garbage of a peer in this process.
func heapNow() uint64 {
	runtime.GC()
	runtime.GC() // collects objects that the first one finalised
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// judge compares delivered events and the hostile peer's observations with the table.
func (a *arena) judge(x *hostile.Exchange, got attacked) {
	a.t.Helper()
	w := &x.Want
	if got.peer.Wrong != "" {
		a.t.Errorf("we sent something wrong: %s", got.peer.Wrong)
	}
	v := got.victim
	if v == nil || v.refused != nil {
		if w.Outcome != hostile.Nothing && w.Outcome != hostile.Anything {
			a.t.Errorf("delivered nothing, want outcome %d (accept: %v)", w.Outcome, got.refused())
		}
	} else {
		if w.Outcome == hostile.Nothing {
			a.t.Errorf("the owner got %v, want nothing", v.delivered)
		}
		a.judgeEvents(w, v)
		a.judgeCompletions(w, v)
	}
	if w.Outcome == hostile.Anything {
		a.judgeAgreement(&got)
		return
	}
	a.judgePeer(w, &got.peer)
}

// judgeAgreement checks that the Terminate that the hostile peer got, if any, is the one that was
// reported to the owner.
func (a *arena) judgeAgreement(got *attacked) {
	a.t.Helper()
	var sent, seen hostile.Term
	var ce *core.Error
	if v := got.victim; v != nil && errors.As(v.end().err, &ce) && ce.Sent {
		sent = hostile.Term{Layer: ce.Layer, Type: ce.Type, Code: ce.Code}
	}
	if t := got.peer.Terminate; t != nil {
		seen = hostile.Term{Layer: t.Layer, Type: t.Type, Code: t.Code}
	}
	if sent != seen && got.peer.End != hostile.Left {
		a.t.Errorf("the owner got %v, the peer got Terminate %+v (end %d)", ce, seen, got.peer.End)
	}
	if got.peer.End == hostile.StillOpen {
		a.t.Error("the connection was left open")
	}
}

// outcomes are the events of each hostile.Outcome.
var outcomes = map[hostile.Outcome]struct {
	kind        states.Kind
	established int
}{
	hostile.Orderly: {states.KindDisconnected, 1}, hostile.Failed: {states.KindDisconnected, 1},
	hostile.Refused: {states.KindRejected, 0}, hostile.ConnectError: {states.KindConnectError, 0},
	hostile.Unreachable: {states.KindUnreachable, 0},
}

// judgeEvents checks that one end was delivered, once, with a reason that names the error, the
// layer and the frame.
func (a *arena) judgeEvents(w *hostile.Want, v *victim) {
	a.t.Helper()
	end, established := v.end(), 0
	for _, e := range v.delivered {
		if e.kind == states.KindEstablished {
			established++
		}
	}
	var ce *core.Error
	if end.err != nil && !errors.As(end.err, &ce) && (end.kind == states.KindDisconnected || !errors.Is(end.err, w.Errno)) {
		a.t.Errorf("the reason is %v, which is no *core.Error, nor %v from TCP's handshake", end.err, w.Errno)
		return
	}
	if ends(end.kind) != 1 || established > 1 || len(v.delivered) != 1+established {
		a.t.Errorf("got %v, want one end, behind at most one Established", v.delivered)
	}
	if w.Outcome == hostile.Anything {
		return
	}
	want := outcomes[w.Outcome]
	status := int32(0)
	if want.established == 0 {
		status = -int32(w.Errno)
	}
	if end.kind != want.kind || established != want.established || end.status != status || (end.err == nil) != (w.Outcome == hostile.Orderly) {
		a.t.Errorf("got %v, want kind %d with status %d", v.delivered, want.kind, status)
	}
	if ce == nil {
		return
	}
	if w.Errno != 0 && ce.Errno != w.Errno || !strings.Contains(ce.Error(), w.Text) {
		a.t.Errorf("the reason is %v, want errno %v and %q", ce, w.Errno, w.Text)
	}
	term := hostile.Term{}
	if ce.Protocol {
		term = hostile.Term{Layer: ce.Layer, Type: ce.Type, Code: ce.Code}
	}
	byUs := w.Term != hostile.Term{} && !w.ByPeer
	if term != w.Term || ce.Sent != byUs || ce.Received != w.ByPeer {
		a.t.Errorf("the reason is %+v, want Terminate %+v, of the peer's: %t", ce, w.Term, w.ByPeer)
	}
}

// judgeCompletions checks that each posted receive has completed once, in order, and before the end
// was delivered. The receive that the error hit must have its status.
func (a *arena) judgeCompletions(w *hostile.Want, v *victim) {
	a.t.Helper()
	if v.atEnd != len(v.wcs) {
		a.t.Errorf("%d completions, %d of them before the end was delivered", len(v.wcs), v.atEnd)
	}
	var next uint64
	failed := false
	for _, wc := range v.wcs {
		if wc.Op == verbs.Recv {
			if wc.ID != next {
				a.t.Errorf("receive %d completed, want %d", wc.ID, next)
			}
			next++
		}
		switch {
		case wc.Status == verbs.StatusSuccess && failed:
			a.t.Errorf("%+v succeeded behind one that failed", wc)
		case wc.Status != verbs.StatusSuccess && !failed && w.Hit != verbs.StatusSuccess:
			if failed = true; wc.Status != w.Hit {
				a.t.Errorf("the first to fail is %+v, want %v", wc, w.Hit)
			}
		case wc.Status != verbs.StatusSuccess && wc.Status != verbs.StatusFlushed && w.Outcome != hostile.Anything && v.reads == 0:
			a.t.Errorf("%+v, want it flushed", wc)
		}
	}
	if next != uint64(a.receives) || len(v.wcs) != a.receives+v.reads {
		a.t.Errorf("%d receives of %d and %d completions in all, with %d Reads", next, a.receives, len(v.wcs), v.reads)
	}
}

// judgePeer compares the hostile peer's observations with the table.
func (a *arena) judgePeer(w *hostile.Want, got *hostile.Result) {
	a.t.Helper()
	byUs := w.Term != hostile.Term{} && !w.ByPeer
	switch t := got.Terminate; {
	case !byUs && t != nil:
		a.t.Errorf("the peer got Terminate %+v, want none", t)
	case byUs && t == nil:
		a.t.Errorf("the peer got no Terminate (end %d, %d FPDUs), want %+v", got.End, got.FPDUs, w.Term)
	case byUs:
		if (hostile.Term{Layer: t.Layer, Type: t.Type, Code: t.Code}) != w.Term {
			a.t.Errorf("the peer got Terminate %+v, want %+v", t, w.Term)
		}
		if w.Copy {
			a.judgeCopy(t.Length, t.DDP, t.RDMAP, got.Offending)
		}
	}
	if w.Outcome == hostile.Nothing {
		if reject := got.Frame != nil && got.Frame.Flags&0x20 != 0; reject != w.Reject || got.Frame != nil && !reject {
			a.t.Errorf("the peer got Reply %+v, want one that rejects: %t", got.Frame, w.Reject)
		}
	}
	if got.End == hostile.StillOpen || got.End == hostile.Reset && byUs {
		a.t.Errorf("the peer saw end %d, want FIN", got.End)
	}
}

// judgeCopy checks that the Terminate has a copy of the offending segment's headers.
func (a *arena) judgeCopy(length uint16, ddp, rdmap, offending []byte) {
	a.t.Helper()
	n, rest := 18, 0
	if offending[0]&0x80 != 0 {
		n = 14
	}
	if offending[1]&0x0f == 1 {
		rest = 28
	}
	if int(length) != len(offending) || string(ddp) != string(offending[:n]) || string(rdmap) != string(offending[n:n+rest]) {
		a.t.Errorf("the Terminate has length %d and headers %x %x, want those of %d bytes %.60x", length, ddp, rdmap, len(offending), offending)
	}
}

// TestHostileSilent runs the exchanges that end only by our time-outs, several at a time.
func TestHostileSilent(t *testing.T) {
	const short = time.Second // a good connection has no longer, either
	newArena(t)               // creates the descriptors of Go's own poller
	before := fds(t)
	t.Run("exchanges", func(t *testing.T) {
		for _, x := range hostile.All() {
			if !x.Slow {
				continue
			}
			for _, side := range sides(x) {
				t.Run(fmt.Sprintf("%s/side %d", x.Name, side), func(t *testing.T) {
					t.Parallel()
					a := newArena(t, func(c *Config) {
						c.RequestTimeout, c.ReplyTimeout, c.UserTimeout, c.MessageTimeout = short, short, short, short
					})
					a.share()
					if x.Regions {
						a.regionLen = 8 << 20 // more than the sockets have room for
					}
					// A good one connects and talks while the peer is silent.
					got := a.attackWith(x, side, hostile.Options{Timeout: 20 * time.Second}, a.good)
					a.judge(x, got)
					a.good()
					a.clean()
				})
			}
		}
	})
	if after := fds(t); after != before {
		t.Errorf("%d descriptors are left of %d", after, before)
	}
}
