package reconnect_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// onBoth runs test on both kinds of devices, and with either node the lower one.
func onBoth(t *testing.T, test func(w *actortest.World, a, b *node)) {
	t.Helper()
	for _, infiniBand := range []bool{false, true} {
		for _, lowFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("InfiniBand %v/low first %v", infiniBand, lowFirst), func(t *testing.T) {
				actortest.Run(t, actortest.Config{InfiniBand: infiniBand}, func(w *actortest.World) {
					a, b := pair(w, lowFirst)
					a.listen()
					b.listen()
					a.dial()
					b.dial()
					w.Advance(10 * time.Second)
					one(t, w, a, b)
					test(w, a, b)
				})
			})
		}
	}
}

// powerCut makes the machine of b vanish without a word.
func powerCut(w *actortest.World) {
	w.Cut("mem0", "mem1")
	w.Crash("mem1")
}

// elsewhere starts b again on another machine.
func elsewhere(w *actortest.World, b *node, incarnation uint64) *node {
	again := &node{w: w, rt: w.Host("mem2", "10.0.0.3"), id: b.id, inc: incarnation, peer: b.peer, at: b.at}
	again.listen()
	return again
}

// challengeTime is the time that the documents promise: two seconds, and half a second for a
// goodbye.
const challengeTime = 2500 * time.Millisecond

// A node whose machine has lost its power comes back at another address. Its peer, which has not
// noticed, asks the old connection for a sign of life, and takes the new one when none comes.
func TestPowerCutAndAnotherAddress(t *testing.T) {
	for name, incarnation := range map[string]uint64{"later": 2, "clock set back": 0} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(w *actortest.World, a, b *node) {
				powerCut(w)
				w.Advance(time.Second)
				again := elsewhere(w, b, incarnation)
				again.dial()
				w.Advance(challengeTime + 100*time.Millisecond)
				one(t, w, a, again)
				a.diary.read(w, func() {
					d := a.diary.downs[len(a.diary.downs)-1]
					if !d.WasUp || !errors.Is(d.Err, rdma.ErrPeerLost) {
						t.Errorf("the old connection has ended with %v", d.Err)
					}
				})
				w.Advance(time.Minute)
				one(t, w, a, again)
			})
		})
	}
}

// A process that claims to be a connected node knocks all the time. The connection answers, and
// stays; the process gets the reason. It is asked for a sign of life every five seconds at most: so
// many of the requests wait for the answer, all others are rejected immediately.
func TestKnocking(t *testing.T) {
	onBoth(t, func(w *actortest.World, a, b *node) {
		downs := len(a.diary.downs)
		w.Delay(10 * time.Millisecond) // so that an answer takes its time
		k := &knocker{w: w, rt: w.Host("mem2", "10.0.0.3"), began: make(map[string]time.Time)}
		k.pid = w.System().Root.Spawn(actor.PropsFromFunc(k.receive, k.rt.OnLoop()))
		defer func() { _ = w.System().Root.StopFuture(k.pid).Wait() }()
		const span = time.Minute
		for d := time.Duration(0); d < span; d += 250 * time.Millisecond {
			k.knock(b.id, 1<<63)
			w.Advance(250 * time.Millisecond)
		}
		w.Advance(3 * time.Second)
		if k.rejected != int(span/(250*time.Millisecond)) || k.wrong != nil {
			t.Errorf("%d requests were rejected; %v", k.rejected, k.wrong)
		}
		if most := int(span/(5*time.Second)) + 1; k.waited == 0 || k.waited > most {
			t.Errorf("%d requests have waited for a sign of life, want 1 to %d", k.waited, most)
		}
		w.Delay(0)
		one(t, w, a, b)
		if n := len(a.diary.downs) - downs; n != 0 {
			t.Errorf("the connection was taken away %d times", n)
		}
	})
}

// knocker claims to be another node.
type knocker struct {
	w        *actortest.World
	rt       *rdma.Runtime
	pid      *actor.PID
	cfg      rdma.IDConfig
	began    map[string]time.Time
	rejected int
	waited   int // of those, for longer than an answer takes
	wrong    error
}

func (k *knocker) knock(node, incarnation uint64) {
	id := k.rt.CreateID(k.pid, k.cfg)
	k.began[id.Id] = time.Now()
	k.w.System().Root.RequestWithCustomSender(id, &rdma.Dial{Addr: "10.0.0.1:7471", PrivateData: request(node, incarnation, 1)}, k.pid)
	k.w.Wait()
}

// request returns the private data of a node's request.
func request(node, incarnation uint64, number uint32) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0x7EDC)
	b = append(b, 1, 0)
	b = binary.BigEndian.AppendUint64(b, node)
	b = binary.BigEndian.AppendUint64(b, incarnation)
	return binary.BigEndian.AppendUint32(b, number)
}

// receive judges answers.
func (k *knocker) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.Rejected:
		k.rejected++
		if len(m.PrivateData) < 4 || m.PrivateData[3] != 7 {
			k.wrong = fmt.Errorf("rejected with %x", m.PrivateData)
		}
		if time.Since(k.began[ctx.Sender().Id]) > 150*time.Millisecond {
			k.waited++
		}
	case *rdma.Established:
		k.wrong = errors.New("established")
	case *rdma.Closed, actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		k.wrong = fmt.Errorf("%T", m)
	}
}

// The reason reaches the node that knocks.
func TestReasonOfAKnock(t *testing.T) {
	onBoth(t, func(w *actortest.World, a, b *node) {
		again := elsewhere(w, b, 2)
		again.dial()
		w.Advance(30 * time.Second)
		again.diary.read(w, func() {
			if again.diary.up != nil || len(again.diary.downs) < 2 {
				t.Fatalf("up: %v, after %d attempts", again.diary.up != nil, len(again.diary.downs))
			}
			for _, d := range again.diary.downs {
				if !errors.Is(d.Err, reconnect.ErrElsewhere) {
					t.Errorf("%v", d.Err)
				}
			}
		})
		one(t, w, a, b)
	})
}

// A process that claims to be a node whose machine has lost its power knocks, and has gone before
// the old connection is given up. The peer does not wait for it, and dials the node again.
func TestKnockAndGo(t *testing.T) {
	for _, secured := range []bool{false, true} {
		t.Run(fmt.Sprint("secured ", secured), func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				a, b := pair(w, true)
				var cfg rdma.IDConfig
				if secured {
					keys := new(rdma.Keyring)
					if err := errors.Join(keys.Use(credential(1)), keys.Accept(credential(1))); err != nil {
						t.Fatal(err)
					}
					cfg = withKeys(keys)
				}
				a.cfg, b.cfg = cfg, cfg
				a.listen()
				b.listen()
				a.dial()
				b.dial()
				w.Advance(10 * time.Second)
				one(t, w, a, b)
				downs := len(a.diary.downs)
				powerCut(w)
				k := &knocker{w: w, rt: w.Host("mem2", "10.0.0.3"), cfg: cfg, began: make(map[string]time.Time)}
				k.pid = w.System().Root.Spawn(actor.PropsFromFunc(k.receive, k.rt.OnLoop()))
				k.knock(b.id, 2)
				w.Advance(time.Second)
				_ = w.System().Root.StopFuture(k.pid).Wait() // its identifier ends
				w.Advance(challengeTime + time.Minute)
				a.diary.read(w, func() {
					if n := len(a.diary.downs) - downs; n < 3 {
						t.Errorf("%d generations have ended, want that of the old connection and those of more attempts: %+v", n, reconnect.Links(a.rt))
					}
				})
			})
		})
	}
}
