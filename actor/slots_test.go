package actor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/states"
)

// Bursts through a send queue of any length, on a device whose slots are free only when a
// completion behind them was polled, and that has no room now and then although it should: nothing
// gets stuck, everything arrives in order, and silent runs stay short.
func TestSilentRunsNeverFillTheQueue(t *testing.T) {
	for _, depth := range []int{1, 3, 4, 5, 8, 13, 20} {
		for _, fail := range []int{0, 3} {
			t.Run(fmt.Sprintf("depth %d, fail %d", depth, fail), func(t *testing.T) {
				t.Parallel()
				onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
					near.wr, near.fail = depth, fail
					silentRuns(w, near, rand.New(rand.NewPCG(uint64(depth), uint64(fail))))
				}, Config{Limits: Limits{SendQueue: 1 << 20}})
			})
		}
	}
}

func silentRuns(w *world, near *kernelLike, rng *rand.Rand) {
	ours, theirs := IDConfig{MaxMessage: 1 << 10, Credits: 1}, IDConfig{MaxMessage: 1 << 10, Credits: 64}
	// too short for messages mode, whose receives have the same limit
	raw := near.wr < 1+wire.ControlReceives
	if raw {
		ours, theirs = IDConfig{Raw: true, MaxMessage: 1 << 10, Credits: near.wr}, IDConfig{Raw: true, MaxMessage: 1 << 10, Credits: 4096}
	}
	server, client := w.farProbe(), w.probe()
	w.listen(server, theirs)
	id := w.rt.CreateID(client.pid, ours)
	client.send(id, &Dial{Addr: there + ":7471"})
	_, s := next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	next[*Established](client)
	sent := 0
	for range 30 {
		n := rng.IntN(3 * near.wr)
		sizes := make([]int, n)
		for i := range sizes {
			sizes[i] = 4
			if rng.IntN(5) == 0 {
				sizes[i] = 200 // does not fit into the work request
			}
		}
		w.onLoop(w.rt, func(l *loop) {
			for i, size := range sizes {
				b := make([]byte, size)
				copy(b, fmt.Sprintf("%04d", sent+i))
				w.conn(l, id).Submit(&takenSend(b).out)
			}
		})
		sent += n
		time.Sleep(time.Duration(rng.IntN(2)) * time.Millisecond)
	}
	for i := range sent {
		if g := server.any(); len(g.data) < 4 || g.data[:4] != fmt.Sprintf("%04d", i) {
			w.Fatalf("message %d is %v", i, g)
		}
	}
	w.onLoop(w.rt, func(*loop) { // the loop may still post returned credits
		for _, d := range near.in.devs {
			for _, q := range d.qps {
				if q.longest > max(0, near.wr/4-1) {
					w.Errorf("a run of %d silent sends in a queue of %d", q.longest, near.wr)
				}
			}
		}
	})
	client.send(id, &Close{})
	end := until[*Closed](client)
	if c := end[len(end)-1].msg.(*Closed); c.Err != nil || !raw && int(c.Delivered) != sent {
		w.Errorf("the end: %v, %d were sent", end, sent)
	}
}

// takenSend returns a message as a connection gets it.
func takenSend(b []byte) *Send {
	s := NewSend(b)
	s.out.Take()
	return s
}

// A kernel's device takes memory for every send that a queue pair has room for: no more of them
// than can be of use.
func TestSendsUnderWay(t *testing.T) {
	for name, tt := range map[string]struct {
		mode    datapath.Mode
		credits int
		peer    int // its hello's credits; 0: not known
		asks    bool
		want    int
	}{
		"the device asks for receives":  {datapath.ModeMessages, 1, 1, true, datapath.SendDepth},
		"the peer grants one":           {datapath.ModeMessages, 32, 1, false, 1 + wire.ControlReceives + datapath.ReadsMax},
		"the peer grants many":          {datapath.ModeMessages, 1, 1000, false, datapath.SendDepth},
		"the peer has not said":         {datapath.ModeMessages, 64, 0, false, 64 + wire.ControlReceives + datapath.ReadsMax},
		"nor do we grant much":          {datapath.ModeMessages, 1, 0, false, datapath.DefaultCredits + wire.ControlReceives + datapath.ReadsMax},
		"without credits, one receive":  {datapath.ModeRaw, 1, 0, false, 1},
		"without credits, many of them": {datapath.ModeRaw, 1000, 0, false, datapath.SendDepth},
		"a foreign peer":                {datapath.ModeForeign, 32, 0, false, 32},
	} {
		underWay := datapath.Terms{Mode: tt.mode, Credits: tt.credits, Peer: wire.Hello{Credits: tt.peer}}
		if got := underWay.SendsUnderWay(tt.asks); got != tt.want {
			t.Errorf("%s: room for %d sends, want %d", name, got, tt.want)
		}
	}
}

// The side that disconnects has nothing to answer: only the peer asks for a disconnect because of
// the event.
func TestOneDisconnectForEachSide(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, far *kernelLike) {
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		id := w.rt.CreateID(client.pid, IDConfig{})
		client.send(id, &Dial{Addr: there + ":7471"})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		client.send(id, &Disconnect{})
		until[*Closed](client)
		until[*Closed](server)
		w.onLoop(w.rt, func(*loop) {
			for side, k := range map[string]*kernelLike{"the one that has asked": near, "its peer": far} {
				if n := k.did[states.OpDisconnect]; n > 1 {
					w.Errorf("%s: %d disconnects, want one at most", side, n)
				}
			}
		})
	})
}
