//go:build python

package actor

import (
	"encoding/hex"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
)

// rekeyed takes large messages, and changes its key as often as peers have to take it.
func rekeyed(tb testing.TB) IDConfig {
	cfg := secured(tb)
	cfg.rekey, cfg.MaxMessage = 1024, 8<<20
	return cfg
}

// unhex returns the bytes of an answer.
func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// dials makes the peer dial a local listener, whose owner accepts.
func (p *pythonPeer) dials(server *probe, at, conn string, more does) *actor.PID {
	p.tb.Helper()
	p.begin("dial", conn, dialing(at), named(credential("alice", 1)), does{"private": []byte("hello")}, more)
	r, s := next[*ConnectRequest](server)
	if r.Identity != "alice" || string(r.PrivateData) != "hello" {
		p.tb.Errorf("the request is %+v", r)
	}
	server.send(s, &Accept{PrivateData: []byte("welcome")})
	if a := p.answer(); a.Error != "" || a.Type != 9 || string(unhex(p.tb, a.Private)) != "welcome" {
		p.tb.Fatalf("accepted with %s", p.last)
	}
	next[*Established](server)
	return s
}

func TestPythonDials(t *testing.T) {
	for name, chacha := range map[string]bool{"AES": false, "ChaCha": true} {
		t.Run(name, func(t *testing.T) {
			rt := openIWARP(t, testSystem(t))
			p, server := startPython(t), newProbe(t, rt.sys, rt.OnLoop(), nil)
			_, at := listen(server, rt, "127.0.0.1:0", rekeyed(t))
			s := p.dials(server, at, "a", does{"chacha": chacha})
			converse(t, p, server, s)
			p.do("goodbye", "a")
			end := until[*Closed](server)
			if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Unknown+c.Unsent != 0 {
				t.Errorf("the end: %v", end)
			}
		})
	}
}

func TestPythonListens(t *testing.T) {
	rt := openIWARP(t, testSystem(t))
	p, client := startPython(t), newProbe(t, rt.sys, rt.OnLoop(), nil)
	at := "127.0.0.1:" + strconv.Itoa(p.do("listen", "a", does{"host": "127.0.0.1"}).Port)
	c := rt.CreateID(client.pid, rekeyed(t))
	client.send(c, &Dial{Addr: at, PrivateData: []byte("hello")})
	a := p.do("serve", "a", named(credential("alice", 1)), does{"private": []byte("welcome")})
	if string(unhex(t, a.Private)) != "hello" {
		t.Errorf("the request is %s", p.last)
	}
	if e, _ := next[*Established](client); e.Identity != "alice" || string(e.PrivateData) != "welcome" {
		t.Errorf("established: %+v", e)
	}
	converse(t, p, client, c)
	client.send(c, &Close{})
	if a := p.do("end", "a"); a.Ended != "goodbye" {
		t.Errorf("the peer's end is %q", a.Ended)
	}
	end := until[*Closed](client)
	if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Unknown+c.Unsent != 0 {
		t.Errorf("the end: %v", end)
	}
}

// Rejects have their reason in both directions, and so do those without authentication.
func TestPythonRejects(t *testing.T) {
	rt := openIWARP(t, testSystem(t))
	p, owner := startPython(t), newProbe(t, rt.sys, rt.OnLoop(), nil)
	_, at := listen(owner, rt, "127.0.0.1:0", secured(t))
	p.begin("dial", "a", dialing(at), named(credential("alice", 1)))
	_, s := next[*ConnectRequest](owner)
	owner.send(s, &Reject{PrivateData: []byte("not now")})
	if a := p.answer(); a.Error != "" || a.Type != 10 || string(unhex(t, a.Private)) != "not now" {
		t.Errorf("rejected with %s", p.last)
	}
	p.do("drained", "a")
	next[*Closed](owner)

	port := p.do("listen", "b", does{"host": "127.0.0.1"}).Port
	dial := func() {
		owner.send(rt.CreateID(owner.pid, secured(t)), &Dial{Addr: "127.0.0.1:" + strconv.Itoa(port)})
	}
	dial()
	p.do("serve", "b", named(credential("alice", 1)), does{"private": []byte("go away"), "reject": true})
	if r, _ := next[*Rejected](owner); string(r.PrivateData) != "go away" {
		t.Errorf("rejected with %+v", r)
	}
	p.do("close", "b")
	next[*Closed](owner)
	for reason := range 4 {
		dial()
		p.do("serve", "b", does{"refuse": reason})
		if f := refusedHandshake(t, owner); !errors.Is(f, unix.EACCES) {
			t.Errorf("refused for reason %d: %v", reason, f)
		} else {
			t.Logf("reason %d: %v", reason, f)
		}
		p.do("close", "b")
	}
}

// refusedHandshake returns the error with which the owner hears that a handshake was refused.
func refusedHandshake(t *testing.T, owner *probe) error {
	t.Helper()
	end := until[*Closed](owner)
	for _, g := range end {
		switch m := g.msg.(type) {
		case *Established, *ConnectRequest, *Received:
			t.Errorf("the owner got %v", end)
		case Failure:
			var h *HandshakeError
			if !errors.As(m, &h) {
				t.Errorf("the failure is %v", m)
			}
			return m
		}
	}
	t.Errorf("no failure: %v", end)
	return nil
}

// converse sends messages, large messages, changes of the key, probes and credit updates in both
// directions.
func converse(t *testing.T, p *pythonPeer, owner *probe, id *actor.PID) {
	t.Helper()
	for round := range 2 {
		for _, n := range []int{0, 1, 100, 5000, 64 << 10} {
			text := numbered(n)
			p.do("send", "a", does{"data": text})
			if g := owner.any(); g.data != string(text) {
				t.Fatalf("%d bytes arrive as %d: %v", n, len(g.data), g.msg)
			}
			owner.send(id, NewSend(text))
			if a := p.do("receive", "a"); a.Data != hex.EncodeToString(text) {
				t.Fatalf("%d bytes arrive as %d", n, len(a.Data)/2)
			}
		}
		for range 4 { // more than 1,024 messages, so that both sides change their keys
			p.do("send", "a", does{"data": []byte("many"), "count": 300})
			for range 300 {
				if g := owner.any(); g.data != "many" {
					t.Fatalf("got %v", g)
				}
				owner.send(id, NewSend([]byte("more")))
				if a := p.do("receive", "a"); string(unhex(t, a.Data)) != "more" {
					t.Fatalf("the peer got %s", p.last)
				}
			}
		}
		p.do("settle", "a")
		p.do("update", "a")
		if n := p.do("updates", "a").Updates; n < round+1 {
			t.Errorf("the key was changed %d times", n)
		}
		p.do("probe", "a")
		largeBoth(t, p, owner, id)
	}
}

func largeBoth(t *testing.T, p *pythonPeer, owner *probe, id *actor.PID) {
	t.Helper()
	for _, n := range []int{1, 1 << 20, 2<<20 + 3} {
		p.begin("offer", "a", does{"size": n})
		if g := owner.any(); g.data != string(numbered(n)) {
			t.Fatalf("an offer of %d bytes arrives as %d: %v", n, len(g.data), g)
		}
		if a := p.answer(); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
	n := 3<<20 + 5
	owner.send(id, NewSend(numbered(n)))
	if a := p.do("receive_large", "a"); a.Size != n || !a.Same {
		t.Fatalf("%d bytes arrive as %s", n, p.last)
	}
}

// A peer's receives become larger from one of this side's Sends on, and smaller when this side has
// acknowledged that: messages that fit in arrive eagerly, and others are offered.
func TestPythonChangesItsReceives(t *testing.T) {
	rt := openIWARP(t, testSystem(t))
	p, server := startPython(t), newProbe(t, rt.sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, "127.0.0.1:0", secured(t))
	s := p.dials(server, at, "a", does{"receive": 1})
	sent := 1 // the accept
	send := func(size, want int) {
		t.Helper()
		before := p.do("offers", "a").Updates
		server.send(s, NewSend(numbered(size)))
		sent++
		if a := p.do("receive_large", "a"); a.Size != size || !a.Same {
			t.Fatalf("%d bytes arrive as %s", size, p.last)
		}
		if n := p.do("offers", "a").Updates - before; n != want {
			t.Errorf("Send %d, of %d bytes: %d were offered, want %d", sent, size, n, want)
		}
	}
	resize := func(from, size int) {
		t.Helper()
		p.begin("resize", "a", does{"from": from, "size": size})
		time.Sleep(100 * time.Millisecond)      // it crosses nothing
		server.send(s, NewSend([]byte("news"))) // its header acknowledges the change
		if a := p.answer(); a.Error != "" {
			t.Fatal(a.Error)
		}
		if g := p.do("receive", "a"); string(unhex(t, g.Data)) != "news" {
			t.Fatalf("got %s", p.last)
		}
	}
	send(2<<10, 1)
	resize(0, 4<<10)
	send(2<<10, 0)
	send(5<<10, 1)
	resize(0, 1<<10)
	send(2<<10, 1)
	p.do("goodbye", "a")
	until[*Closed](server)
}

// numbered returns the bytes of an offer of the peer's.
func numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}
