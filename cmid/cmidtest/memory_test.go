package cmidtest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sides"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// TestDepth: no more Reads are on their way than both sides have agreed. The time that they take
// shows it.
func TestDepth(t *testing.T) {
	both(t, func(w *sides.World, f *Fabric) {
		depths := func(serve, ask uint8) *cmid.ConnParam {
			return &cmid.ConnParam{ResponderResources: serve, InitiatorDepth: ask, RetryCount: 7, RNRRetryCount: 7}
		}
		c := w.ConnectedWith(sides.Setup{Connect: depths(4, 3), Accept: depths(2, 9)})
		a, b := w.Memory(c.AQ, 64, sides.RemoteAll, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
		f.Delay(time.Second)
		for _, x := range []struct {
			q     *sides.Queues
			far   *verbs.MR
			trips time.Duration
		}{{c.AQ, b, 3}, {c.BQ, a, 2}} {
			// of six Reads: two concurrently, for the peer serves two; then four, for it serves
			// four
			begin := w.A.Loop.Now()
			for i := range 6 {
				w.Must(x.q.Read(i, verbs.Signaled, sides.Part(x.q.MR, i, 1), x.far, i))
			}
			w.Until("all", func() bool { return sides.Succeeded(x.q.Of(verbs.Send)) == 6 })
			if d := w.A.Loop.Now().Sub(begin); d != x.trips*2*time.Second {
				t.Errorf("six Reads took %v, want %d round trips", d, x.trips)
			}
		}
	})
}

// TestReadIsLost: an answer to a later request than a Read does not complete it. InfiniBand gives
// up; iWARP waits.
func TestReadIsLost(t *testing.T) {
	for _, kind := range []Message{MsgRead, MsgReadResponse} {
		both(t, func(w *sides.World, f *Fabric) {
			c := w.Connected(2)
			far := w.Memory(c.BQ, 64, sides.RemoteAll, 2)
			w.Must(c.AQ.PostSend(1, "before"))
			w.Until("the Send before it", func() bool { return len(c.AQ.Of(verbs.Send)) == 1 })
			f.Drop(kind, 1)
			w.Must(c.AQ.Read(2, verbs.Signaled, sides.Part(c.AQ.MR, 0, 1), far, 0))
			w.Must(c.AQ.PostSend(3, "behind"))
			w.Within(2*retryTimeout, 0, func() bool { return len(c.AQ.Of(verbs.Send)) == 3 })
			if n := len(c.BQ.Of(verbs.Recv)); kind == MsgRead && n != 1 {
				t.Errorf("%d Sends received: what is behind a lost message cannot be taken for it", n)
			}
			got := c.AQ.Of(verbs.Send)[1:]
			if w.IWARP {
				if len(got) > 0 {
					t.Errorf("completed as %+v: the Read was never answered", got)
				}
				return
			}
			if len(got) != 2 || got[0].Status != verbs.StatusRetryExc || got[1].Status != verbs.StatusFlushed {
				t.Errorf("completed as %+v, want %v and %v", got, verbs.StatusRetryExc, verbs.StatusFlushed)
			}
		})
	}
}

// TestFreedMeanwhile: if memory was freed that a work request uses, the connection ends, and the
// memory does not change.
func TestFreedMeanwhile(t *testing.T) {
	t.Run("of a Read", func(t *testing.T) {
		both(t, func(w *sides.World, f *Fabric) {
			c := w.Connected(0)
			near, far := w.Memory(c.AQ, 64, verbs.LocalWrite, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
			w.Must(c.AQ.Read(1, 0, sides.Part(near, 0, 64), far, 0))
			w.Must(c.Active.Device().Free(near))
			w.Until("the failure", func() bool { return len(c.AQ.Of(verbs.Send)) == 1 })
			if wc := c.AQ.Done[0]; wc.Status != verbs.StatusLocProt {
				t.Errorf("completed as %+v", wc)
			}
			if w.IWARP {
				sides.Next[*cmid.Disconnected](w.A, c.Active)
				sides.Next[*cmid.Disconnected](w.B, c.Passive)
			}
		})
	})
	t.Run("of a receive", func(t *testing.T) {
		both(t, func(w *sides.World, f *Fabric) {
			c := w.Connected(1)
			w.Must(c.Passive.Device().Free(c.BQ.MR))
			w.Must(c.AQ.PostSend(1, "x"))
			w.Until("the failure", func() bool { return len(c.BQ.Of(verbs.Recv)) == 1 })
			if wc := c.BQ.Done[0]; wc.Status != verbs.StatusLocProt {
				t.Errorf("completed as %+v", wc)
			}
			if w.IWARP {
				sides.Next[*cmid.Disconnected](w.A, c.Active)
				sides.Next[*cmid.Disconnected](w.B, c.Passive)
				return
			}
			w.Until("the sender's", func() bool { return len(c.AQ.Of(verbs.Send)) == 1 })
			if wc := c.AQ.Done[0]; wc.Status != verbs.StatusRemOp {
				t.Errorf("completions of the sender: %+v", wc)
			}
		})
	})
}

// TestWritesWaitBehindASend: on InfiniBand nothing overtakes a Send that waits for its receive, and
// waiting is no failure.
func TestWritesWaitBehindASend(t *testing.T) {
	w, _ := twinWorld(t, Config{})
	c := w.Connected(0)
	near, far := w.Memory(c.AQ, 64, 0, 1), w.Memory(c.BQ, 64, sides.RemoteAll, 2)
	before := far.Bytes[0]
	w.Must(c.AQ.PostSend(1, "one"))
	w.Must(c.AQ.PostSend(2, "two"))
	w.Must(c.AQ.Write(3, verbs.Signaled, sides.Part(near, 0, 1), far, 0))
	w.Settle()
	w.Must(c.BQ.PostRecv(0, sides.SlotSize))
	w.Within(2*retryTimeout, 0, func() bool { return len(c.AQ.Done) > 1 })
	if far.Bytes[0] != before || len(c.AQ.Done) != 1 {
		t.Errorf("byte %#x after completions %+v: the second Send waits, and the Write behind it", far.Bytes[0], c.AQ.Done)
	}
	w.Must(c.BQ.PostRecv(1, sides.SlotSize))
	w.Until("all", func() bool { return sides.Succeeded(c.AQ.Done) == 3 })
	w.Same("then the Write", far.Bytes[:1], near.Bytes[:1])
}

// TestMemoryAcrossLoops: each side's memory and keys are its loop's, also when both act
// concurrently.
func TestMemoryAcrossLoops(t *testing.T) {
	flavors(t, func(t *testing.T, flavor states.Flavor) {
		p := connected(t, flavor)
		defer p.close()
		const rounds = 200
		var far [2]*verbs.MR
		p.a.must(func() (err error) { far[1], err = p.active.Device().Alloc(64, sides.RemoteAll); return err })
		p.b.must(func() (err error) { far[0], err = p.passive.Device().Alloc(64, sides.RemoteAll); return err })
		key := [2]verbs.SendWR{{RemoteAddr: far[0].Addr, RKey: far[0].RKey}, {RemoteAddr: far[1].Addr, RKey: far[1].RKey}}
		for i := range rounds {
			for n, x := range []struct {
				s   *side
				id  *cmid.ID
				q   *queues
				own *verbs.MR
			}{{p.a, p.active, p.activeQ, far[1]}, {p.b, p.passive, p.passiveQ, far[0]}} {
				if err := x.s.l.Post(func() {
					write, read := key[n], key[n]
					write.Op, write.Inline = verbs.Write, []byte{byte(i)}
					read.Op, read.SGL = verbs.Read, []verbs.SGE{sides.Part(x.q.mr, 4096+i, 1)}
					for range 5 {
						for range 20 { // the peer's requests come during this
							mr, err := x.id.Device().Alloc(64, 0)
							if err = errors.Join(err, x.id.Device().Free(mr)); err != nil {
								t.Error(err)
							}
						}
						x.own.Bytes[32]++ // only this side writes this half
						if err := errors.Join(x.q.qp.PostSend(&write), x.q.qp.PostSend(&read)); err != nil {
							t.Error(err)
						}
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		for _, q := range []*queues{p.activeQ, p.passiveQ} {
			for i := range rounds {
				if got := q.mr.Bytes[4096+i]; got != byte(i) {
					t.Fatalf("Read %d brought %d: it sees the Write before it", i, got)
				}
			}
		}
	})
}

// TestKeysDiffer: keys of one side are not valid on the other, so that a test that mixes them up
// fails.
func TestKeysDiffer(t *testing.T) {
	w, _ := twinWorld(t, Config{Flavor: states.IWARP})
	c := w.Connected(0)
	seen := map[uint32]bool{}
	for range 100 {
		for _, q := range []*sides.Queues{c.AQ, c.BQ} {
			mr := w.Memory(q, 1, sides.RemoteAll, 0)
			if seen[mr.RKey-1] || seen[mr.RKey] || seen[mr.RKey+1] || mr.RKey == 0 {
				t.Fatalf("key %#x: it, or its neighbour, is another region's", mr.RKey)
			}
			seen[mr.RKey] = true
		}
	}
	_, err := c.Active.Device().Alloc(1, 1<<7)
	w.WantErr("a right that there is not", err, unix.EINVAL)
}
