package slots

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/iwarp"
)

// hostile is a peer without this package: an actor that dials, sends its ring, and sends its other
// messages when it has the other side's ring.
type hostile struct {
	addr  string
	first func(key rdma.RemoteKey) []byte // replaces its ring; nil: its ring
	then  [][]byte
	rt    *rdma.Runtime
	ended chan error
}

func (h *hostile) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Request(h.rt.CreateID(ctx.Self(), rdma.IDConfig{Memory: 4096}), &rdma.Dial{Addr: h.addr, PrivateData: greetingData()})
	case *rdma.Established:
		ctx.Request(ctx.Sender(), &rdma.AllocMemory{Bytes: 4096, Access: rdma.RemoteWrite})
	case *rdma.MemoryAllocated:
		ctx.Request(ctx.Sender(), &rdma.Grant{Memory: m.Memory})
	case *rdma.Granted:
		if h.first != nil {
			ctx.Respond(rdma.NewSend(h.first(m.Key)))
			return
		}
		s, _ := (&ring{4, 1024, m.Key}).encodeMessage()
		ctx.Respond(s)
	case *rdma.Received:
		for _, b := range h.then {
			ctx.Respond(rdma.NewSend(b))
		}
		h.then = nil
	case *rdma.Closed:
		h.ended <- m.Err
	}
}

// attack makes a hostile peer connect.
func attack(tb testing.TB, rt *rdma.Runtime, l *Listener, h *hostile) {
	tb.Helper()
	h.addr, h.rt, h.ended = l.Addr().String(), rt, make(chan error, 1)
	pid := rt.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return h }, rt.OnLoop()))
	tb.Cleanup(func() { _ = rt.System().Root.StopFuture(pid).Wait() })
}

func filledMsg(slot, n int) []byte       { return clone(putFilled([]written{{slot, n}})) }
func releasedMsg(slots ...uint16) []byte { return clone(putReleased(slots)) }

func clone(s *rdma.Send) []byte {
	defer s.Release()
	return append([]byte(nil), s.Bytes()...)
}

// A peer that violates the protocol loses its connection, with the reason, and no other.
func TestHostilePeers(t *testing.T) {
	rt, far := openRuntime(t), openRuntime(t)
	l := listen(t, rt, Config{Slots: 4, Size: 1024})
	near, good := joined(t, far, l, Config{Slots: 4, Size: 1024})
	for name, x := range map[string]struct {
		then [][]byte
		what string
	}{
		"a slot that there is not":       {[][]byte{filledMsg(4, 1)}, "slot 4 of 4"},
		"a slot far away":                {[][]byte{filledMsg(65535, 1)}, "slot 65535 of 4"},
		"too long":                       {[][]byte{filledMsg(1, 1025)}, "1025 bytes"},
		"far too long":                   {[][]byte{filledMsg(1, -1)}, "bytes, of 1024"},
		"a slot that was not released":   {[][]byte{filledMsg(2, 1), filledMsg(2, 1)}, "not released"},
		"released what it does not have": {[][]byte{releasedMsg(0)}, "does not have"},
		"released what there is not":     {[][]byte{releasedMsg(4)}, "slot 4 of 4"},
		"fills behind its end":           {[][]byte{{msgEnd}, filledMsg(0, 1)}, "behind its end"},
		"ends twice":                     {[][]byte{{msgEnd}, {msgEnd}}, "twice"},
		"describes its ring twice":       {[][]byte{append([]byte{msgRing}, make([]byte, ringLen-1)...)}, "twice"},
		"an empty message":               {[][]byte{{}}, "empty"},
		"an unknown message":             {[][]byte{{99}}, "kind 99"},
		"half a slot":                    {[][]byte{filledMsg(0, 1)[:5]}, "4 bytes"},
		"half a release":                 {[][]byte{releasedMsg(1)[:2]}, "1 bytes"},
		"nothing filled":                 {[][]byte{{msgFilled}}, "0 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostile{then: x.then}
			attack(t, far, l, h)
			c, err := l.Accept(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			for err == nil { // nothing is released before the end: a released slot may be filled
				var r Received
				if r, err = c.Receive(soon(t)); err == nil {
					defer r.Release()
				}
			}
			for errors.Is(err, io.EOF) { // the peer ended before: Reserve returns the reason
				var s Reserved
				if s, err = c.Reserve(soon(t)); err == nil {
					s.Release()
					time.Sleep(time.Millisecond)
					err = io.EOF
				}
			}
			var broken *ProtocolError
			if !errors.As(err, &broken) || !errors.Is(err, unix.EPROTO) || !strings.Contains(err.Error(), x.what) {
				t.Errorf("%v does not say %q", err, x.what)
			}
			select {
			case <-h.ended:
			case <-time.After(patience):
				t.Error("the connection goes on")
			}
			_ = c.Close()
		})
	}
	send(t, near, "the others go on")
	receives(t, good, "the others go on")
}

// An invalid or missing ring makes no connection.
func TestHostileRings(t *testing.T) {
	rt, far := openRuntime(t), openRuntime(t)
	l := listen(t, rt, Config{Slots: 4, Size: 1024})
	ringOf := func(slots, size int) func(rdma.RemoteKey) []byte {
		return func(key rdma.RemoteKey) []byte {
			s, _ := (&ring{slots, size, key}).encodeMessage()
			return clone(s)
		}
	}
	for name, first := range map[string]func(rdma.RemoteKey) []byte{
		"no slots":       ringOf(0, 16),
		"empty slots":    ringOf(16, 0),
		"beyond its key": ringOf(5, 1024),
		"huge":           ringOf(65535, 1<<31),
		"too short":      func(key rdma.RemoteKey) []byte { return ringOf(1, 1)(key)[:ringLen-1] },
		"no key": func(rdma.RemoteKey) []byte {
			return append([]byte{msgRing, 0, 1, 0, 0, 0, 1}, make([]byte, rdma.RemoteKeyLen)...)
		},
		"a key to read": func(key rdma.RemoteKey) []byte {
			key.Rights = rdma.RemoteRead
			return ringOf(1, 1)(key)
		},
		"filled first": func(rdma.RemoteKey) []byte { return filledMsg(0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostile{first: first}
			attack(t, far, l, h)
			select {
			case <-h.ended:
			case <-time.After(patience):
				t.Error("the connection goes on")
			}
		})
	}
	joined(t, far, l, Config{}) // they take no place in the backlog
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places.Total() != 0 {
		t.Errorf("%d connections wait to be accepted", l.places.Total())
	}
}

// A peer that does not send its ring is given up, and its place is free again.
func TestSilentPeer(t *testing.T) {
	rt, far := openRuntime(t), openRuntime(t)
	l := listen(t, rt, Config{Backlog: 1})
	id := far.CreateID(nil)
	if _, err := rdma.Ask[*rdma.Established](soon(t), far, id, &rdma.Dial{Addr: l.Addr().String(), PrivateData: greetingData()}); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(soon(t), far, l.Addr().String()); !strings.Contains(err.Error(), "wait to be accepted") {
		t.Errorf("the second is not refused: %v", err)
	}
	far.System().Root.Send(id, &rdma.DestroyID{})
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := Dial(soon(t), far, l.Addr().String())
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Since(begun) > patience {
			t.Fatal(err)
		}
	}
}

// Peers at one address that do not send their rings leave places for others, and their places are
// free again afterwards.
func TestSilentPeers(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt, Config{Backlog: 16})
	silent, others := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	n := 0
	for ; l.admitPeer(silent) == ""; n++ {
		if n > 16 {
			t.Fatal("more places than there are")
		}
	}
	for range 3 {
		if refusal := l.admitPeer(others); refusal != "" {
			t.Errorf("beside %d of one address: %s", n, refusal)
		}
	}
	for range n {
		l.removeFailed(silent)
	}
	if l.places.Total() != 3 || l.admitPeer(silent) != "" {
		t.Errorf("%d connections wait when %d have gone", l.places.Total(), n)
	}
}

// A peer that speaks another protocol is rejected, and Dial notices a server that speaks another
// one.
func TestStrangers(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	for _, private := range []string{"", "chat/1", tag, tag + "\x00"} {
		_, err := rdma.Ask[*rdma.Established](soon(t), rt, rt.CreateID(nil),
			&rdma.Dial{Addr: l.Addr().String(), PrivateData: []byte(private)})
		var rejected *rdma.Rejected
		if !errors.As(err, &rejected) || !strings.Contains(string(rejected.PrivateData), "slots/1") {
			t.Errorf("with %q: %v", private, err)
		}
	}
	other := rt.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
			ctx.Respond(&rdma.Accept{PrivateData: []byte("chat/1")})
		}
	}, rt.OnLoop()))
	ev, err := rdma.Ask[*rdma.Listening](soon(t), rt, rt.CreateID(other), &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Dial(soon(t), rt, ev.Local.String())
	is(t, err, unix.EPROTO)
}

// In a secured mode one-sided operations are not protected: they are refused unless allowed, and
// Dial reports that.
func TestSecured(t *testing.T) {
	credential := rdma.Credential{Identity: "ann", Key: [32]byte{1, 2, 3}}
	for _, allowed := range []rdma.Access{0, rdma.RemoteWrite} {
		security := &rdma.Security{Mode: rdma.PSK, Keys: new(rdma.Keyring), AllowOneSided: allowed}
		if err := errors.Join(security.Keys.Use(credential), security.Keys.Accept(credential)); err != nil {
			t.Fatal(err)
		}
		rt := openRuntime(t, rdma.Config{Device: iwarp.New(), Security: security})
		l := listen(t, rt)
		c, err := Dial(soon(t), rt, l.Addr().String())
		if allowed == 0 {
			is(t, err, rdma.ErrSecured)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		send(t, c, "allowed")
		receives(t, s, "allowed")
		if s.Identity() != "ann" {
			t.Errorf("the peer is %q", s.Identity())
		}
		_, _ = c.Close(), s.Close()
	}
}

// Missing memory costs the connection, with the errno, and an invalid Config is refused.
func TestNoMemory(t *testing.T) {
	rt := openRuntime(t, rdma.Config{Device: iwarp.New(), Limits: rdma.Limits{Memory: 1 << 10}})
	l := listen(t, openRuntime(t))
	_, err := Dial(soon(t), rt, l.Addr().String())
	is(t, err, unix.ENOMEM)
	for _, cfg := range []Config{{Slots: 129}, {Slots: -1}, {Size: -1}, {Slots: 128, Size: 1 << 24}, {Backlog: -1}, {Linger: -1}} {
		_, err := Dial(soon(t), rt, l.Addr().String(), cfg)
		is(t, err, unix.EINVAL)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Dial(ended, rt, l.Addr().String())
	is(t, err, context.Canceled)
}

// releases is the message that makes a hostile peer send that it has released slots.
type releases []uint16

// A peer that releases a slot while the device still reads it does not get the slot overwritten,
// and the slot becomes free only once: two programs never fill the same bytes.
func TestReleasedWhileTheDeviceWrites(t *testing.T) {
	// Writes of this device complete after a round trip
	actortest.Run(t, actortest.Config{InfiniBand: true}, func(w *actortest.World) {
		t, rt := w.T(), w.Runtime()
		l, err := Listen(t.Context(), rt, "10.0.0.1:7471", Config{Slots: 1, Size: 1024})
		if err != nil {
			t.Fatal(err)
		}
		far := w.Host("far", "10.0.0.2")
		h := &hostile{addr: l.Addr().String(), rt: far, ended: make(chan error, 1)}
		var id *actor.PID
		peer := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *rdma.Established:
				id = ctx.Sender()
			case releases:
				ctx.Request(id, rdma.NewSend(releasedMsg(m...)))
				return
			}
			h.Receive(ctx)
		}, far.OnLoop()))
		c, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		reserved := func(when string, want bool) (s Reserved) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			s, err := c.Reserve(ctx)
			if (err == nil) != want {
				t.Fatalf("%s a slot is free: %t, want %t (%v)", when, err == nil, want, err)
			}
			return s
		}
		w.Delay(100 * time.Millisecond)
		w.System().Root.Send(peer, releases{0})
		w.Advance(50 * time.Millisecond)
		send(t, c, "under way")
		reserved("when it was sent", false)
		w.Advance(60 * time.Millisecond) // the release has arrived, the Write has not completed
		reserved("while the device reads it", false)
		w.Advance(time.Second)
		s := reserved("when the device is finished", true)
		reserved("while a program fills it", false)
		s.Release()
		w.Delay(0)
		_ = c.Close()
		_ = l.Close()
		_ = w.System().Root.StopFuture(peer).Wait()
	})
}
