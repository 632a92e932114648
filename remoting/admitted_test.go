package remoting_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// besieged is a node that three others have keys of: an honest one, which is asked and asks all the
// time, and a hostile one, which writes its frames by hand.
type besieged struct {
	t, whole    *testing.T // t: of the attack
	node, other *node
	host        *node // of the hostile one's connections
	key         rdma.IDConfig
	inc         uint64
	reported    atomic.Int64 // refusals, also those that were not published
	asked       atomic.Int64
	stop        chan struct{}
	all         sync.WaitGroup
}

const hostileName = "10.6.6.6:7"

func besiege(t *testing.T) *besieged {
	t.Helper()
	w := newNetwork(t)
	b := &besieged{t: t, whole: t, inc: 7, stop: make(chan struct{})}
	cfg := w.config("v", "h", "e")
	cfg.Expose = remoting.Expose{Reach: []string{"echo", "stuck", "room-*"}}
	cfg.Patience = 2 * time.Second
	cfg.Admit = func(p remoting.Peer) error {
		if p.Name == "" || p.Identity == "" {
			return fmt.Errorf("%+v is nobody", p)
		}
		return nil
	}
	b.node = start(t, cfg)
	b.node.events.stop()
	b.node.sys.EventStream.Subscribe(func(ev any) {
		switch ev := ev.(type) {
		case *remoting.Refused:
			if ev.Target.GetAddress() == b.node.Name() {
				b.reported.Add(1)
			}
		case *remoting.Unreported:
			b.reported.Add(int64(ev.Count))
		}
	})
	b.other = start(t, w.config("h", "v"))
	b.host = open(t, remoting.Config{}, 1)
	t.Cleanup(b.host.end)
	w.named("v", b.node.Name())
	w.named("h", b.other.Name())
	w.named("e", hostileName)
	k := new(rdma.Keyring)
	if err := k.Use(keyOf("v", "e")); err != nil {
		t.Fatal(err)
	}
	b.key = rdma.IDConfig{MaxMessage: 4 << 20, Security: &rdma.Security{Mode: rdma.PSK, Keys: k}}
	b.node.spawn("echo", echo)
	b.other.spawn("echo", echo)
	blockedActor(t, b.node, "stuck")
	for i := range rooms {
		blockedActor(t, b.node, fmt.Sprint("room-", i))
	}
	for _, way := range [][2]*node{{b.other, b.node}, {b.node, b.other}} {
		b.all.Go(func() { b.talk(way[0], way[1]) })
	}
	t.Cleanup(func() {
		close(b.stop)
		b.all.Wait()
	})
	return b
}

const rooms = 200

// talk asks one question after the other. Each has to be answered.
func (b *besieged) talk(from, to *node) {
	for {
		select {
		case <-b.stop:
			return
		default:
		}
		if got, err := from.ask(to.pid("echo"), text("x")); err != nil {
			b.whole.Errorf("%s asks %s: %v, %v", from.Name(), to.Name(), got, err)
			return
		}
		b.asked.Add(1)
	}
}

// holds waits until the honest nodes have talked some more.
func (b *besieged) holds(what string) {
	b.t.Helper()
	was := b.asked.Load()
	eventually(b.t, what+": the others do not get on", func() bool { return b.asked.Load() > was+20 })
}

// enter connects the hostile node, as a process that was started later than the one before. If that
// one is still connected, the node may end both connections, and the later process tries again.
func (b *besieged) enter() *stranger {
	b.t.Helper()
	for over := time.After(soon); ; {
		b.inc++
		s := meetAs(b.t, b.host, b.node, hostileName, b.inc, b.key)
		select {
		case <-s.up:
			s.hello()
		case <-s.down:
			s.away()
			continue
		case <-over:
			b.t.Fatal("not connected")
		}
		select {
		case <-s.in: // its hello
			s.send(nil)
			return s
		case <-s.down:
			s.away()
		case <-over:
			b.t.Fatal("no hello came")
		}
	}
}

// leave ends its connection.
func (b *besieged) leave(s *stranger) {
	b.t.Helper()
	s.away()
	eventually(b.t, "it stays connected", func() bool { return !infoOf(b.node, hostileName).Connected })
}

// filled returns a frame with as many of these records as it holds.
func filled(t *testing.T, most int, next func(i int) frame.Record) (b []byte, n int) {
	t.Helper()
	var w frame.Writer
	for w.Len() < most {
		r := next(n)
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return w.Bytes(), n
}

// An admitted node, with a valid key, attacks another one on the wire. The others' requests are
// answered all the time, memory stays bounded, and each refusal is reported.
func TestHostileMember(t *testing.T) {
	b := besiege(t)
	b.holds("before")
	before := rss(t, os.Getpid())
	most := 0
	for _, attack := range []struct {
		name string
		do   func(s *stranger)
	}{
		{"tokens", b.tokens},
		{"lanes", b.lanes},
		{"huge names", b.hugeNames},
		{"system messages", b.systemMessages},
		{"half a frame", b.halfFrame},
		{"never reads", b.neverReads},
		{"again and again", b.againAndAgain},
	} {
		t.Run(attack.name, func(t *testing.T) {
			b.t = t
			defer func() { b.t = b.whole }()
			began, asked := time.Now(), b.asked.Load()
			s := b.enter()
			attack.do(s)
			b.holds(attack.name)
			s.release()
			b.leave(s)
			grown := rss(t, os.Getpid()) - before
			most = max(most, grown)
			t.Logf("%d requests of others in %v; the memory has grown by %d MiB", b.asked.Load()-asked, time.Since(began), grown>>20)
		})
	}
	if most > 512<<20 && !raceEnabled {
		t.Errorf("the memory has grown by %d MiB", most>>20)
	}
	s := b.enter() // it is still a node as others are
	s.say(frame.Record{Kind: frame.KindUser, Target: "echo", Sender: frame.PID{ID: "me"}, Type: "google.protobuf.StringValue"})
	s.hears(frame.KindUser)
}

// refusals waits until so many more were reported.
func (b *besieged) refusals(what string, was, n int64) {
	b.t.Helper()
	eventually(b.t, what, func() bool { return b.reported.Load() >= was+n })
	if got := b.reported.Load() - was; got > n {
		b.t.Errorf("%s: %d were reported of %d", what, got, n)
	}
}

// tokens tries to answer what another node is asked, by a future's name that it knows.
func (b *besieged) tokens(s *stranger) {
	answer := b.other.held("held")
	b.other.Expose(remoting.Expose{Reach: []string{"held"}})
	var seen actor.PID
	got := make(chan bool, 1)
	b.other.spawn("sees", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			seen = *ctx.Sender() // a PID as it was
			got <- true
		}
	})
	b.node.sys.Root.RequestFuture(b.other.pid("sees"), text("?"), soon)
	<-got
	f := b.node.sys.Root.RequestFuture(b.other.pid("held"), text("true"), soon)
	if _, ok := tables.LinkOf(seen.Id); !ok {
		b.t.Fatalf("%q is no future's name", seen.Id)
	}
	prefix := seen.Id[:strings.LastIndexByte(seen.Id, '.')+1]
	for i := range 200 {
		s.say(frame.Record{
			Kind: frame.KindUser, Target: fmt.Sprint(prefix, i%10), TargetRequest: uint32(i), Type: "google.protobuf.StringValue",
		})
	}
	s.ends(frame.GoodbyeBadFrame)
	answer()
	if res, err := remoting.Result(f); err != nil || res.(*wrapperspb.StringValue).Value != "true" {
		b.t.Errorf("%v, %v", res, err)
	}
}

// lanes floods many actors that consume nothing.
func (b *besieged) lanes(s *stranger) {
	body := make([]byte, 4<<10)
	data, _ := filled(b.t, 1<<20, func(i int) frame.Record {
		return frame.Record{Kind: frame.KindUser, Target: fmt.Sprint("room-", i%rooms), Type: emptyType, Body: body}
	})
	s.flood(40, data)
	settled(func() uint64 { return infoOf(b.node, hostileName).Counts.Received })
}

// hugeNames uses ever new names, as long as they may be, of targets and senders.
func (b *besieged) hugeNames(s *stranger) {
	was, n := b.reported.Load(), 0
	for round := range 20 {
		data, count := filled(b.t, 512<<10, func(i int) frame.Record {
			name := fmt.Sprint(round, ".", i, ".", strings.Repeat("n", frame.MaxName))[:frame.MaxName]
			return frame.Record{Kind: frame.KindUser, Target: name, Sender: frame.PID{ID: name}, Type: emptyType}
		})
		s.send(data)
		n += count
		// The refusals of all rounds are more than may wait for a peer that does not read in time.
		b.refusals("huge names", was, int64(n))
		eventually(b.t, "the peer takes the refusals", func() bool { return infoOf(b.node, hostileName).Waiting == 0 })
	}
}

// systemMessages tries all forbidden operations, on existing and missing targets.
func (b *besieged) systemMessages(s *stranger) {
	was := b.reported.Load()
	targets := []string{"echo", "guardian", "eventstream", "nobody", "future$1", "stuck"}
	const rounds = 500
	for i := range rounds {
		var w []frame.Record
		for _, target := range targets {
			w = append(w,
				frame.Record{Kind: frame.KindStop, Target: target},
				frame.Record{Kind: frame.KindUser, Target: target, Sender: frame.PID{ID: "me"}, Type: "actor.PoisonPill"},
				frame.Record{Kind: frame.KindWatch, Target: target, Sender: frame.PID{ID: fmt.Sprint("w", i)}},
				frame.Record{Kind: frame.KindUnwatch, Target: target, Sender: frame.PID{ID: fmt.Sprint("w", i)}},
				frame.Record{Kind: frame.KindTerminated, Target: target, Sender: frame.PID{ID: "echo"}},
				frame.Record{Kind: frame.KindSpawn, Seq: uint64(i), Target: target, Type: "kind"},
				frame.Record{Kind: frame.KindRefused, Target: target, Sender: frame.PID{ID: "future$1", Request: 1}},
			)
		}
		s.say(w...)
	}
	s.hears(frame.KindSpawned)
	// at least each Stop; existing actors are not watched; the future's PoisonPill is an answer
	eventually(b.t, "refusals are missing", func() bool {
		return b.reported.Load() >= was+int64(rounds*len(targets))
	})
	if i := infoOf(b.node, hostileName); i.Watched != 0 || i.Futures != 0 {
		b.t.Errorf("%+v", i)
	}
	for _, name := range []string{"echo", "stuck"} {
		if _, ok := b.node.sys.ProcessRegistry.GetLocal(name); !ok {
			b.t.Errorf("%s is gone", name)
		}
	}
}

// halfFrame sends a record that is cut off.
func (b *besieged) halfFrame(s *stranger) {
	data := frameOf(b.t, frame.Record{Kind: frame.KindUser, Target: "echo", Type: emptyType, Body: make([]byte, 1000)})
	s.send(data[:len(data)/2])
	s.ends(frame.GoodbyeBadFrame)
}

// neverReads asks, and takes no answers.
func (b *besieged) neverReads(s *stranger) {
	s.retains.Store(true)
	body := append([]byte{0x0a, 0x80, 0x08}, make([]byte, 1<<10)...) // a string of 1 KiB
	data, _ := filled(b.t, 1<<20, func(int) frame.Record {
		return frame.Record{Kind: frame.KindUser, Target: "echo", Sender: frame.PID{ID: "me"}, Type: "google.protobuf.StringValue", Body: body}
	})
	s.flood(64, data)
	settled(func() uint64 { return infoOf(b.node, hostileName).Counts.Received })
	if i := infoOf(b.node, hostileName); i.Waiting > 10<<20 {
		b.t.Errorf("%d bytes wait for it", i.Waiting)
	}
}

// againAndAgain leaves unconsumed messages behind, as one process after the other.
func (b *besieged) againAndAgain(s *stranger) {
	body := make([]byte, 64<<10)
	data, _ := filled(b.t, 2<<20, func(i int) frame.Record {
		return frame.Record{Kind: frame.KindUser, Target: fmt.Sprint("room-", i%rooms), Type: emptyType, Body: body}
	})
	s.flood(4, data)
	for range 20 {
		next := b.enter() // takes the place of the one before
		next.flood(4, data)
		s.away()
		s = next
	}
	s.away()
	if i := b.node.Peers(); len(i) > 2 {
		b.t.Errorf("%d peers are remembered", len(i))
	}
}
