package actor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/states"
)

// talker is a side of a connection that sends in bursts, and records its messages.
type talker struct {
	w    *world
	rng  *rand.Rand // chooses the messages to send
	hand *rand.Rand // chooses the messages to retain
	p    *probe
	id   *actor.PID

	sends    [][]byte // in order
	notified []int    // sizes of those that asked for Sent
	got      []string
	sent     []int // sizes
	failed   int
	closed   *Closed
	leaveAt  int // the message at which it panics; 0: at none
	hold     bool
}

func (k *talker) react(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case func(actor.Context):
		m(ctx)
	case *Received:
		k.got = append(k.got, string(m.Data))
		if k.hold && k.hand.IntN(3) == 0 {
			m.Retain()
			kept, d := string(m.Data), time.Duration(k.hand.IntN(2000))*time.Microsecond
			go func() {
				time.Sleep(d)
				if string(m.Data) != kept {
					k.w.Errorf("a retained message of %d bytes has changed", len(kept))
				}
				m.Release()
			}()
		}
		if k.leaveAt > 0 && len(k.got) == k.leaveAt {
			panic("for the test")
		}
	case *Sent:
		k.sent = append(k.sent, m.Bytes)
	case *SendFailed:
		k.failed += m.Sends
	case *Closed:
		k.closed = m
	}
}

// burst sends messages in one turn.
func (k *talker) burst(n int, all bool) func(actor.Context) {
	return func(ctx actor.Context) {
		for range n {
			size := k.rng.IntN(80)
			if k.rng.IntN(4) == 0 {
				size = []int{0, 500, 1000, 1016, 1024, 1025, 2000, 2048, 2049, 5000, 16350, 16 << 10, 40 << 10, 70 << 10}[k.rng.IntN(14)]
			}
			b := pattern(size, len(k.sends))
			s := NewSend(b)
			s.Notify = all || k.rng.IntN(5) == 0
			if s.Notify {
				k.notified = append(k.notified, size)
			}
			if k.rng.IntN(20) == 0 {
				s.Renew = func(p []byte) []byte { return p }
			}
			k.sends = append(k.sends, b)
			ctx.Request(k.id, s)
		}
	}
}

// The ends of a program.
const (
	inOrder = iota // a Close when all is quiet
	closing        // a Close behind messages
	disconnecting
	destroying
	leaving // an owner panics
	programEnds
)

// playProgram plays a random program on a connection. It returns the owners' messages, if they
// do not depend on time.
func playProgram(w *world, seed uint64, cfg IDConfig) (trace string) {
	rng := rand.New(rand.NewPCG(seed, 77))
	cfg.MaxMessage = 100 << 10
	server := cfg
	cfg.Credits, server.Credits = 1+rng.IntN(70), 1+rng.IntN(70)
	if rng.IntN(4) == 0 {
		cfg.Credits = 1 + rng.IntN(3)
	}
	if rng.IntN(2) == 0 {
		w.f.Delay(time.Duration(rng.IntN(1000)) * time.Microsecond)
	}
	var sides [2]*talker
	sides[0] = &talker{w: w, p: w.probe()}
	sides[1] = &talker{w: w, p: w.farProbe()}
	w.listen(sides[1].p, server)
	sides[0].id = w.rt.CreateID(sides[0].p.pid, cfg)
	sides[0].p.send(sides[0].id, &Dial{Addr: there + ":7471"})
	_, sides[1].id = next[*ConnectRequest](sides[1].p)
	sides[1].p.send(sides[1].id, &Accept{})
	for _, k := range sides {
		next[*Established](k.p)
		k.rng = rand.New(rand.NewPCG(seed, rng.Uint64()))
		k.hand = rand.New(rand.NewPCG(seed, rng.Uint64()))
		k.hold = rng.IntN(2) == 0
		k.p.reactWith(k.react)
	}
	all := rng.IntN(2) == 0
	how := rng.IntN(programEnds)
	if how == leaving {
		sides[rng.IntN(2)].leaveAt = 1 + rng.IntN(60)
	}
	rounds := 2 + rng.IntN(8)
	ender := rng.IntN(2)
	for round := range rounds {
		k := sides[rng.IntN(2)]
		f := k.burst(rng.IntN(50), all)
		if last := round == rounds-1; last && how != inOrder && how != leaving {
			k = sides[ender]
			inner := k.burst(rng.IntN(50), all)
			f = func(ctx actor.Context) {
				inner(ctx)
				switch how {
				case closing:
					ctx.Request(k.id, &Close{})
				case disconnecting:
					ctx.Request(k.id, &Disconnect{})
				case destroying:
					ctx.Request(k.id, &DestroyID{})
				}
			}
		}
		w.sys.Root.Send(k.p.pid, f)
		if rng.IntN(3) > 0 {
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
		}
	}
	if how == inOrder || how == leaving {
		time.Sleep(time.Minute)
		k := sides[ender]
		if how == leaving {
			k = sides[0]
		}
		k.p.send(k.id, &Close{})
	}
	time.Sleep(5 * time.Minute)
	settle()
	for i, k := range sides {
		k.judge([]string{"client", "server"}[i], sides[1-i], how, all)
		if how == inOrder {
			trace += fmt.Sprintf("%d messages were Sent, and %d came:\n", len(k.sent), len(k.got))
			for _, g := range k.got {
				trace += fmt.Sprintf("%d %x\n", len(g), g[:min(4, len(g))])
			}
		}
	}
	for _, rt := range []*Runtime{w.rt, w.far} {
		if n := w.held(rt); n != 0 {
			w.Errorf("%d bytes count when all is released", n)
		}
	}
	return trace
}

// judge compares the messages of the owner called name with those of o, its peer. all: it has set
// Notify for all messages.
func (k *talker) judge(name string, o *talker, how int, all bool) {
	if len(o.got) > len(k.sends) {
		k.w.Errorf("%s: %d messages came of %d", name, len(o.got), len(k.sends))
		return
	}
	for j, g := range o.got {
		if g != string(k.sends[j]) {
			k.w.Errorf("%s: message %d has %d bytes, not %d", name, j, len(g), len(k.sends[j]))
			break
		}
	}
	c := k.closed
	switch {
	case k.leaveAt > 0 && len(k.got) >= k.leaveAt: // it has left, and gets nothing more
		return
	case c == nil:
		k.w.Errorf("%s: no Closed", name)
		return
	}
	fates := fmt.Sprintf("%d/%d/%d of %d, %d came, %d Sent, %d failed", c.Delivered, c.Unsent, c.Unknown, len(k.sends), len(o.got), len(k.sent), k.failed)
	if int(c.Delivered+c.Unsent+c.Unknown) != len(k.sends) || int(c.Delivered) > len(o.got) || int(c.Delivered+c.Unknown) < len(o.got) {
		k.w.Errorf("%s: fates: %s", name, fates)
	}
	if len(k.sent) > len(k.notified) || len(k.sent)+k.failed < len(k.notified) || all && len(k.sent)+k.failed != len(k.sends) {
		k.w.Errorf("%s: answers: %s, %d asked for Sent", name, fates, len(k.notified))
	}
	if how == inOrder && (len(o.got) != len(k.sends) || int(c.Delivered) != len(k.sends)) {
		k.w.Errorf("%s: closed in order: %s", name, fates)
	}
	offered := func(n int) bool { return n > 1000 } // perhaps: it may be Sent later
	is, want := slices.DeleteFunc(slices.Clone(k.sent), offered), slices.DeleteFunc(slices.Clone(k.notified), offered)
	if len(is) > len(want) || !slices.Equal(is, want[:len(is)]) {
		k.w.Errorf("%s: Sent out of order: %v, want %v", name, is, want)
	}
}

// Whatever two sides send, retain and end, their owners see the same as before there were bundles.
func TestBundlesInPrograms(t *testing.T) {
	opts := Config{Limits: Limits{SendQueue: 5000}}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onAllKinds(t, func(w *world) { playProgram(w, seed, IDConfig{}) }, opts)
			onAllKinds(t, func(w *world) { playProgram(w, seed, secured(w)) }, opts)
			seen := make(map[states.Flavor]string)
			for _, version := range []byte{4, 5} {
				onKernelLike(t, kernelLike{fail: 3, version: version}, func(w *world, _, _ *kernelLike) {
					is := playProgram(w, seed, IDConfig{})
					if was, ok := seen[w.flavor]; ok && is != was {
						t.Errorf("without bundles it was\n%s\nand is\n%s", was, is)
					}
					seen[w.flavor] = is
				}, opts)
			}
			onKernelLike(t, kernelLike{fail: 3}, func(w *world, _, _ *kernelLike) { playProgram(w, seed, secured(w)) }, opts)
		})
	}
}
