package iwarp

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/hostile"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

var (
	mutateSeed   = flag.Uint64("hostile.seed", 1, "TestHostileMutations: seed")
	mutateFirst  = flag.Uint64("hostile.first", 0, "TestHostileMutations: first round")
	mutateRounds = flag.Uint64("hostile.rounds", 100, "TestHostileMutations: rounds per role, with and without CRC")
)

// TestHostileMutations records a good exchange with every kind of operation. Then it repeats the
// exchange with mutations, in both roles, with owners that do the same as before.
func TestHostileMutations(t *testing.T) {
	for _, crc := range []bool{false, true} {
		t.Run(fmt.Sprintf("CRC %t", crc), func(t *testing.T) {
			a := newArenaWith(t, 8, 80000, func(c *Config) { c.CRC = crc })
			theirs, ours := a.regions(a.client), a.regions(a.server)
			a.quiet = a.left()
			defer a.free(a.client, theirs)
			defer a.free(a.server, ours)
			a.script = func(v *victim) {
				peer := theirs.known
				if v.n == a.client {
					peer = ours.known
				}
				a.everything(v, peer)
			}
			rec := a.record()
			for _, side := range []hostile.Side{hostile.Dials, hostile.Answers} {
				units := rec.Initiator
				if side == hostile.Answers {
					units = rec.Responder
				}
				a.unmutated(hostile.Replay(units, side, patience))
				before := heapNow()
				for i := range *mutateRounds {
					round := *mutateFirst + i
					bad, how := hostile.Mutate(rand.New(rand.NewPCG(*mutateSeed, round)), units)
					got := a.attack(hostile.Replay(bad, side, 50*time.Millisecond), side, hostile.Options{})
					a.judge(hostile.Replay(nil, side, 0), got)
					if i%16 == 0 {
						a.good()
					}
					a.clean()
					if t.Failed() {
						t.Fatalf("side %d, %s: go test -run 'TestHostileMutations/CRC_%t' -hostile.seed=%d -hostile.first=%d -hostile.rounds=1",
							side, how, crc, *mutateSeed, round)
					}
				}
				if after := heapNow(); after > before+128<<10 {
					t.Errorf("side %d: %d mutated exchanges left %d bytes of heap", side, *mutateRounds, after-before)
				}
			}
		})
	}
}

// everything posts an operation of each kind, in several sizes.
func (a *arena) everything(v *victim, peer hostile.Regions) {
	both := peer.Both
	for i, wr := range []struct {
		op  verbs.Opcode
		n   uint32
		flg verbs.SendFlags
	}{
		{verbs.Send, 0, 0},
		{verbs.Send, 1, verbs.Solicited},
		{verbs.Write, 0, 0},
		{verbs.Write, 5, 0},
		{verbs.Read, 100, 0},
		{verbs.Send, 1424, verbs.Fence},
		{verbs.Write, 4096, 0},
		{verbs.Read, 0, 0},
		{verbs.Read, 4000, 0},
		{verbs.Send, 63, 0},
		{verbs.Send, 70000, 0},
	} {
		w := verbs.SendWR{ID: uint64(100 + i), Op: wr.op, Flags: wr.flg | verbs.Signaled, RemoteAddr: both.TO, RKey: both.STag}
		mr := a.memory[v.n][0]
		if wr.op == verbs.Read {
			mr = a.memory[v.n][1]
		}
		if wr.n > 0 {
			w.SGL = []verbs.SGE{{MR: mr, Length: wr.n}}
		}
		switch err := v.qp.PostSend(&w); {
		case err == nil:
			v.reads++
		case !errors.Is(err, unix.EINVAL): // it may be over already
			a.t.Errorf("work request %d: %v", i, err)
		}
	}
}

// record makes the client and the server do everything over a relay, and then ends the connection.
func (a *arena) record() hostile.Recording {
	a.t.Helper()
	a.serve(time.Time{})
	type result struct {
		rec hostile.Recording
		err error
	}
	done := make(chan result, 1)
	go func() {
		rec, err := hostile.Record(a.t.Context(), a.lair, fmt.Sprintf("127.0.0.1:%d", a.at.Port()))
		done <- result{rec, err}
	}()
	a.dial()
	a.until("everything", func() bool {
		for _, v := range a.victims {
			if v.collect(); len(v.wcs) < v.reads+5 || v.reads == 0 {
				return false
			}
		}
		return len(a.victims) == 2
	})
	for _, v := range a.victims {
		for _, wc := range v.wcs {
			if wc.Status != verbs.StatusSuccess {
				a.t.Fatalf("while recording: %+v", wc)
			}
		}
	}
	for h, v := range a.victims {
		if v.n == a.client {
			a.client.do(h, &cmid.Disconnect{})
		}
	}
	a.until("the recorded connection's end", func() bool { a.bury(); return a.delivered() })
	clear(a.victims)
	r := <-done
	if r.err != nil {
		a.t.Fatal(r.err)
	}
	a.clean()
	return r.rec
}

// String describes what happened to v.
func (v *victim) String() string {
	if v == nil {
		return "nobody was notified"
	}
	return fmt.Sprintf("got %v, accept: %v, completed %+v", v.delivered, v.refused, v.wcs)
}

// unmutated runs x as it was recorded. All of it must work, or the mutations would not get far.
func (a *arena) unmutated(x *hostile.Exchange) {
	a.t.Helper()
	got := a.attack(x, x.Side, hostile.Options{})
	if v := got.victim; v == nil || v.end().kind != states.KindDisconnected || v.end().err != nil || got.peer.Wrong != "" {
		a.t.Fatalf("said again as it was: the peer saw %+v, and we ended with %v", got.peer, v)
	}
	for _, wc := range got.victim.wcs {
		if wc.Op != verbs.Recv && wc.Status != verbs.StatusSuccess {
			a.t.Errorf("said again as it was: %+v", wc)
		}
	}
	a.clean()
}
