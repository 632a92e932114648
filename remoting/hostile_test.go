package remoting_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// stranger is a peer with an arbitrary protocol: a reconnecting actor, and a test that writes its
// frames.
type stranger struct {
	t    *testing.T
	sys  *actor.ActorSystem
	link *actor.PID
	name string
	inc  uint64
	up   chan *reconnect.Up
	down chan error
	in   chan []frame.Record
	// of the first generation
	counts chan reconnect.Counts

	retains  atomic.Bool // incoming messages are retained, not consumed
	retained []*rdma.Received
	mu       sync.Mutex
}

// meet connects a stranger to a node.
func meet(t *testing.T, n *node, name string) *stranger {
	t.Helper()
	host := open(t, remoting.Config{}, 1) // supplies the runtime
	t.Cleanup(host.end)
	return meetFrom(t, host, n, name)
}

func meetFrom(t *testing.T, host, n *node, name string) *stranger {
	t.Helper()
	return meetWith(t, host, n, name, rdma.IDConfig{MaxMessage: 4 << 20})
}

func meetWith(t *testing.T, host, n *node, name string, id rdma.IDConfig) *stranger {
	t.Helper()
	return meetAs(t, host, n, name, 7, id)
}

// meetAs connects an incarnation of a stranger.
func meetAs(t *testing.T, host, n *node, name string, incarnation uint64, id rdma.IDConfig) *stranger {
	t.Helper()
	s := &stranger{
		t: t, sys: host.sys, name: name, inc: incarnation, up: make(chan *reconnect.Up, 1), down: make(chan error, 64), in: make(chan []frame.Record, 1<<16),
		counts: make(chan reconnect.Counts, 1),
	}
	owner, err := host.sys.Root.SpawnNamed(actor.PropsFromFunc(s.receive, host.rt.OnLoop()), fmt.Sprint("stranger-", name, "-", incarnation))
	if err != nil {
		t.Fatal(err)
	}
	peers := reconnect.NewPeers(reconnect.PeersConfig{Node: remoting.NodeID(name), Incarnation: s.inc})
	s.link = reconnect.Spawn(host.rt, owner, reconnect.Config{
		Dial: rdma.Dial{Addr: n.Name()}, Peers: peers, Peer: remoting.NodeID(n.Name()), ID: id,
		Backoff: reconnect.Backoff{First: time.Hour},
	})
	return s
}

func (s *stranger) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *reconnect.Up:
		s.up <- m
	case *reconnect.Down:
		select {
		case s.counts <- m.Counts:
		default:
		}
		s.down <- m.Err
	case *rdma.Received:
		retains := s.retains.Load() // now: the test may go on when it has read the frame
		s.in <- readFrame(s.t, m.Data)
		if retains {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.retained = append(s.retained, m.Retain())
		}
	}
}

// release releases the retained messages.
func (s *stranger) release() {
	s.retains.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.retained {
		m.Release()
	}
	s.retained = nil
}

func readFrame(t testing.TB, b []byte) (list []frame.Record) {
	d := frame.NewReader(append([]byte(nil), b...), nil)
	for {
		var r frame.Record
		ok, err := d.Next(&r)
		if err != nil {
			t.Errorf("a node has sent %x: %v", b, err)
		}
		if !ok {
			return list
		}
		list = append(list, r)
	}
}

// connect waits for the connection.
func (s *stranger) connect() *stranger {
	s.t.Helper()
	select {
	case <-s.up:
	case err := <-s.down:
		s.t.Fatalf("not connected: %v", err)
	case <-time.After(soon):
		s.t.Fatal("not connected")
	}
	return s
}

func (s *stranger) send(b []byte) { s.sys.Root.Send(s.link, rdma.NewSend(b)) }

func (s *stranger) say(records ...frame.Record) {
	var w frame.Writer
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	s.send(w.Bytes())
}

func (s *stranger) hello(change ...func(*frame.Hello)) {
	h := &frame.Hello{Name: s.name, Member: "stranger", Incarnation: s.inc, MaxMessage: 4 << 20}
	for _, c := range change {
		c(h)
	}
	s.say(frame.Record{Kind: frame.KindHello, Hello: h})
}

// hears waits for a record of that kind.
func (s *stranger) hears(kind frame.Kind) frame.Record {
	s.t.Helper()
	for over := time.After(soon); ; {
		select {
		case list := <-s.in:
			for _, r := range list {
				if r.Kind == kind {
					return r
				}
			}
		case <-over:
			s.t.Fatalf("no %v came", kind)
		}
	}
}

// introduce goes as far as an open link.
func (s *stranger) introduce() *stranger {
	s.t.Helper()
	s.connect()
	s.hello()
	s.hears(frame.KindHello)
	s.send(nil)
	return s
}

// ends waits for the end of the connection, and for the node's reason.
func (s *stranger) ends(code frame.Code) {
	s.t.Helper()
	if r := s.hears(frame.KindGoodbye); r.Code != code || r.Reason == "" {
		s.t.Errorf("the goodbye is %+v, want code %d", r, code)
	}
	select {
	case <-s.down:
	case <-time.After(soon):
		s.t.Error("the connection does not end")
	}
}

// good asserts that a node still works for a third one.
func good(t *testing.T, n *node) {
	t.Helper()
	c := open(t, remoting.Config{}, 1)
	defer c.end()
	if got, err := c.ask(n.pid("echo"), text("still there")); err != nil || got.(*wrapperspb.StringValue).Value != "still there" {
		t.Errorf("%v, %v", got, err)
	}
}

// A stranger that does not introduce itself as it should gets a reason, and loses its connection.
func TestBadIntroductions(t *testing.T) {
	t.Parallel()
	n := start(t, remoting.Config{Expose: everything})
	n.spawn("echo", echo)
	user := frame.Record{Kind: frame.KindUser, Target: "echo", Type: "x.T"}
	for name, c := range map[string]struct {
		say  func(s *stranger)
		code frame.Code
	}{
		"garbage":           {func(s *stranger) { s.send([]byte("GET / HTTP/1.1\r\n\r\n")) }, frame.GoodbyeBadFrame},
		"zeros":             {func(s *stranger) { s.send(make([]byte, 100)) }, frame.GoodbyeBadFrame},
		"an empty frame":    {func(s *stranger) { s.send(nil) }, frame.GoodbyeNoHello},
		"a message":         {func(s *stranger) { s.say(user) }, frame.GoodbyeNoHello},
		"nothing":           {func(*stranger) {}, frame.GoodbyeNoHello},
		"another name":      {func(s *stranger) { s.hello(func(h *frame.Hello) { h.Name = "10.0.0.1:1" }) }, frame.GoodbyeName},
		"our name":          {func(s *stranger) { s.hello(func(h *frame.Hello) { h.Name = n.Name() }) }, frame.GoodbyeName},
		"other incarnation": {func(s *stranger) { s.hello(func(h *frame.Hello) { h.Incarnation++ }) }, frame.GoodbyeIncarnation},
		"small messages":    {func(s *stranger) { s.hello(func(h *frame.Hello) { h.MaxMessage = 1000 }) }, frame.GoodbyeVersion},
		"another version": {func(s *stranger) {
			var w frame.Writer
			_ = w.Append(&frame.Record{Kind: frame.KindHello, Hello: &frame.Hello{Name: s.name, Incarnation: s.inc, MaxMessage: 1 << 20}})
			w.Bytes()[3]++
			s.send(w.Bytes())
		}, frame.GoodbyeVersion},
	} {
		t.Run(name, func(t *testing.T) {
			s := meet(t, n, "stranger:"+name).connect()
			c.say(s)
			s.ends(c.code)
		})
	}
	eventually(t, "strangers are left", func() bool { return len(n.Peers()) == 0 })
	good(t, n)
}

// On an open link bytes that no node sends end the connection, with a reason.
func TestBadFrames(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything})
	n.spawn("echo", echo)
	hello := frame.Record{Kind: frame.KindHello, Hello: &frame.Hello{Name: "x", MaxMessage: 1 << 20}}
	huge := binary.AppendUvarint([]byte{byte(frame.KindStop)}, 1<<30)
	for name, b := range map[string][]byte{
		"garbage": []byte("\xff\xfe\xfd garbage"), "a name of a GiB": huge, "a name that is longer than all": binary.AppendUvarint(huge[:1:1], math.MaxUint64),
		"half a record": frameOf(t, frame.Record{Kind: frame.KindStop, Target: "half"})[:3], "a second hello": frameOf(t, hello),
	} {
		t.Run(name, func(t *testing.T) {
			s := meet(t, n, "stranger:"+name).introduce()
			s.send(b)
			s.ends(frame.GoodbyeBadFrame)
			d := await(t, n, func(d *remoting.Disconnected) bool { return d.Peer.Name == s.name })
			if !errors.Is(d.Err, remoting.ErrProtocol) {
				t.Errorf("%v", d)
			}
		})
	}
	good(t, n)
}

func frameOf(t *testing.T, r frame.Record) []byte {
	t.Helper()
	var w frame.Writer
	if err := w.Append(&r); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// A frame that is well-formed and makes no sense costs the message: the link stays, and no actor is
// deceived.
func TestLies(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything})
	n.spawn("echo", echo)
	s := meet(t, n, "liar:1").introduce()
	target, in := n.probe("target")
	child := make(chan *actor.PID, 1)
	n.spawn("parent", func(ctx actor.Context) {
		if _, ok := ctx.Message().(*actor.Started); ok {
			child <- ctx.Spawn(actor.PropsFromFunc(echo))
		}
	})
	kid := <-child
	body := func(m proto.Message) []byte { b, _ := proto.Marshal(m); return b }
	user := func(typ string, b []byte) frame.Record {
		return frame.Record{Kind: frame.KindUser, Target: "target", Sender: frame.PID{ID: "future$1"}, Type: typ, Body: b}
	}
	for what, r := range map[string]frame.Record{
		"a type that is not known": user("no.such.Type", nil),
		"bytes that are no string": user("google.protobuf.StringValue", []byte("\x0a\xff")),
		"Terminated":               user("actor.Terminated", body(&actor.Terminated{Who: kid})),
		"Stop":                     user("actor.Stop", nil),
		"Watch":                    user("actor.Watch", body(&actor.Watch{Watcher: kid})),
	} {
		s.say(r)
		if got := s.hears(frame.KindRefused); got.Sender.ID != "future$1" || got.Target != "target" || got.Code == frame.RefusedDenied {
			t.Errorf("%s: %+v", what, got)
		}
	}
	s.say(
		frame.Record{Kind: frame.KindTerminated, Target: "parent", Sender: frame.PID{ID: kid.Id}},
		frame.Record{Kind: frame.KindTerminated, Target: "target", Sender: frame.PID{ID: "somebody"}},
		frame.Record{Kind: frame.KindSpawned, Seq: 1, Target: "echo"},
		frame.Record{Kind: frame.KindRefused, Target: "x", Sender: frame.PID{ID: "future$1"}},
		frame.Record{Kind: frame.KindUnwatch, Target: "target", Sender: frame.PID{ID: "somebody"}},
		frame.Record{Kind: frame.KindWatch, Target: "target", Sender: frame.PID{Address: "10.9.9.9:1", ID: "somebody"}},
		user("google.protobuf.StringValue", body(text("the last"))),
	)
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "the last" {
		t.Errorf("%v", m)
	}
	silent(t, in, 10*time.Millisecond)
	if i := n.Peers(); len(i) != 1 || !i[0].Connected || i[0].Watched != 0 {
		t.Errorf("%+v", i)
	}
	_ = n.sys.Root.StopFuture(target).Wait()
	good(t, n)
}

// A peer that uses ever new names, of targets, senders, watchers and of the nodes of its senders,
// has this node keep a bounded number of them.
func TestManyNames(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything, Resolve: func(context.Context, string) (string, error) {
		return "", errors.New("there is no such node")
	}})
	n.spawn("echo", echo)
	s := meet(t, n, "names:1").introduce()
	b, _ := proto.Marshal(text("x"))
	const rounds, each = 100, 1000
	for i := range rounds {
		var w frame.Writer
		for j := range each {
			name := fmt.Sprintf("%d-%d-%s", i, j, strings.Repeat("n", 200))
			for _, r := range []frame.Record{
				{Kind: frame.KindUser, Target: name, Sender: frame.PID{Address: "node" + name, ID: name}, Type: "google.protobuf.StringValue", Body: b},
				{Kind: frame.KindWatch, Target: "echo", Sender: frame.PID{ID: name}},
				{Kind: frame.KindUnwatch, Target: "echo", Sender: frame.PID{ID: name}},
			} {
				if err := w.Append(&r); err != nil {
					t.Fatal(err)
				}
			}
			if w.Len() > 60<<10 {
				s.send(w.Bytes())
				w = frame.Writer{}
			}
		}
		if w.Len() > 0 {
			s.send(w.Bytes())
		}
		s.say(frame.Record{Kind: frame.KindUser, Target: "echo", Sender: frame.PID{ID: "me"}, Type: "google.protobuf.StringValue", Body: b})
		for s.hears(frame.KindUser).Type != "google.protobuf.StringValue" {
			continue // a DeadLetterResponse
		}
	}
	if i := n.Peers(); len(i) > 257 {
		t.Errorf("%d peers", len(i))
	}
	good(t, n)
}

// Silent, unauthenticated peers block neither peers from other addresses nor outgoing dials.
func TestManyStrangers(t *testing.T) {
	n, other := start(t, remoting.Config{Expose: everything, Peers: 64}), start(t, remoting.Config{Expose: everything})
	n.spawn("echo", echo)
	other.spawn("echo", echo)
	host := start(t, remoting.Config{})
	var silent []*stranger
	for i := range 100 {
		silent = append(silent, meetFrom(t, host, n, fmt.Sprint("silent:", i)))
	}
	eventually(t, "they are not there", func() bool { return len(n.Peers()) > 10 })
	time.Sleep(50 * time.Millisecond)
	if i := n.Peers(); len(i) > 32 {
		t.Errorf("%d strangers", len(i))
	}
	if got, err := n.ask(other.pid("echo"), text("out")); err != nil {
		t.Error(got, err)
	}
	src, err := rdma.ParseAddr("127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	friend := start(t, remoting.Config{Dial: rdma.Dial{Src: src}})
	if got, err := friend.ask(n.pid("echo"), text("in")); err != nil {
		t.Error(got, err)
	}
	for _, s := range silent {
		s.sys.Root.Send(s.link, &rdma.DestroyID{})
	}
}

// A connection that is not from a node is rejected.
func TestNotANode(t *testing.T) {
	n := start(t, remoting.Config{})
	n.spawn("echo", echo)
	host := start(t, remoting.Config{})
	for _, private := range []string{"", "hello", "\x7e\xdc\x01\x00"} {
		ctx, cancel := timeout(soon)
		id := host.rt.CreateID(nil)
		_, err := rdma.Ask[*rdma.Established](ctx, host.rt, id, &rdma.Dial{Addr: n.Name(), PrivateData: []byte(private)})
		var rejected *rdma.Rejected
		if !errors.As(err, &rejected) {
			t.Errorf("%q: %v", private, err)
		}
		cancel()
	}
	if len(n.Peers()) != 0 {
		t.Errorf("%+v", n.Peers())
	}
}
