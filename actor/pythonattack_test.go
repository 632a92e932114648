//go:build python

package actor

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/limits"
)

// attack is a secured listener and client, and a peer that has the key and misuses it: so it can
// send modifications of its bytes that an attacker on the path would make.
type attack struct {
	*testing.T
	rt     *Runtime
	p      *pythonPeer
	owner  *probe // of the listener
	client *probe
	at     string // the listener
	port   string // the peer's listener
	alice  does
}

func startAttack(t *testing.T, cfg ...Config) *attack {
	t.Helper()
	rt := openIWARP(t, testSystem(t), cfg...)
	a := &attack{T: t, rt: rt, p: startPython(t), alice: named(credential("alice", 1))}
	a.owner, a.client = newProbe(t, rt.sys, rt.OnLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
	_, a.at = listen(a.owner, rt, "127.0.0.1:0", secured(t))
	a.port = strconv.Itoa(a.p.do("listen", "listener", does{"host": "127.0.0.1"}).Port)
	return a
}

// honest fails unless an honest client is served.
func (a *attack) honest() {
	a.Helper()
	s := a.p.dials(a.owner, a.at, "honest", nil)
	a.p.do("send", "honest", does{"data": []byte("honest")})
	if g := a.owner.any(); g.data != "honest" || g.sender.Id != s.Id {
		a.Fatalf("got %v", g)
	}
	a.p.do("goodbye", "honest")
	if end := until[*Closed](a.owner); end[len(end)-1].msg.(*Closed).Err != nil {
		a.Errorf("the honest client's end: %v", end)
	}
}

// eachBit runs over two bits of each byte.
func eachBit(n int, f func(flip does)) {
	for i := range n {
		for _, bit := range []int{i % 8, (i + 3) % 8} {
			f(does{"at": i, "bit": bit})
		}
	}
}

// TestPythonFlipsTheClientsHandshake: whatever byte is another, no owner hears of it.
func TestPythonFlipsTheClientsHandshake(t *testing.T) {
	a := startAttack(t)
	honest := a.p.tries("dial", "x", dialing(a.at), a.alice, does{"half": true})
	a.p.do("close", "x")
	for what, n := range map[string]int{"request": len(honest.Request) / 2, "first": 8 + 5 + 16} {
		eachBit(n, func(flip does) {
			got := a.p.tries("dial", "x", dialing(a.at), a.alice, flip, does{"flip": what, "private": []byte("hello"), "timeout": 5})
			if got.Error == "" && !got.Rejected {
				t.Errorf("%s, %v: the answer is %s", what, flip, a.p.last)
			}
			if contains(got.Error, "Timeout") {
				t.Errorf("%s, %v: no answer", what, flip)
			}
			a.p.do("close", "x")
		})
	}
	a.owner.quiet()
	a.honest()
}

// TestPythonFlipsTheServersHandshake: the client refuses, and its error names the handshake.
func TestPythonFlipsTheServersHandshake(t *testing.T) {
	a := startAttack(t)
	for what, n := range map[string]int{"reply": 72, "accept": 8 + 7 + 16} {
		eachBit(n, func(flip does) {
			a.client.send(a.rt.CreateID(a.client.pid, secured(t)), &Dial{Addr: "127.0.0.1:" + a.port})
			a.p.tries("serve", "listener", a.alice, flip, does{"flip": what, "private": []byte("welcome")})
			a.p.begin("drained", "listener")
			if err := refusedHandshake(t, a.client); err != nil {
				is(t, err, unix.EACCES)
			}
			a.p.answer()
		})
	}
}

// TestPythonFlipsMessages: a message with another byte ends its connection, and no other.
func TestPythonFlipsMessages(t *testing.T) {
	a := startAttack(t)
	other := a.p.dials(a.owner, a.at, "other", nil)
	eachBit(8+7+16, func(flip does) {
		a.p.dials(a.owner, a.at, "x", nil)
		sealed := unhex(t, a.p.do("seal", "x", does{"data": []byte("got you")}).Sealed)
		sealed[flip["at"].(int)] ^= 1 << flip["bit"].(int)
		a.p.do("raw", "x", does{"data": sealed})
		a.p.do("drained", "x")
		a.badMessage()
	})
	a.p.do("send", "other", does{"data": []byte("still here")})
	if g := a.owner.any(); g.data != "still here" || g.sender.Id != other.Id {
		t.Errorf("got %v", g)
	}
	a.p.do("goodbye", "other")
	until[*Closed](a.owner)
}

// badMessage expects the end of a connection with a message that does not open.
func (a *attack) badMessage() {
	a.Helper()
	end := until[*Closed](a.owner)
	if k := kinds(end); k != "Disconnected Closed" {
		a.Errorf("the end is reported as %v", end)
	}
	is(a, end[len(end)-1].msg.(*Closed).Err, unix.EBADMSG)
}

// TestPythonReplaysMessages: twice, in another order, of another connection, and our own.
func TestPythonReplaysMessages(t *testing.T) {
	a := startAttack(t)
	seal := func(conn string) []byte { return unhex(t, a.p.do("seal", conn, does{"data": []byte("pay")}).Sealed) }
	raw := func(conn string, b []byte) { a.p.do("raw", conn, does{"data": b}) }

	a.p.dials(a.owner, a.at, "twice", nil)
	once := seal("twice")
	raw("twice", once)
	if g := a.owner.any(); g.data != "pay" {
		t.Fatalf("got %v", g)
	}
	raw("twice", once)
	a.p.do("drained", "twice")
	a.badMessage()

	a.p.dials(a.owner, a.at, "order", nil)
	seal("order")
	raw("order", seal("order"))
	a.p.do("drained", "order")
	a.badMessage()

	one := a.p.dials(a.owner, a.at, "one", nil)
	a.p.dials(a.owner, a.at, "two", nil)
	spliced := seal("one")
	raw("two", spliced)
	a.p.do("drained", "two")
	a.badMessage()
	raw("one", spliced)
	if g := a.owner.any(); g.data != "pay" || g.sender.Id != one.Id {
		t.Fatalf("the connection that was robbed got %v", g)
	}

	a.owner.send(one, NewSend([]byte("yours")))
	a.p.do("reflect", "one")
	a.p.do("drained", "one")
	a.badMessage()
	a.honest()
}

// TestPythonReplaysTheHandshake: a recorded request gets a reply, and its first record does not
// open. A recorded reply is refused.
func TestPythonReplaysTheHandshake(t *testing.T) {
	a := startAttack(t)
	a.p.begin("dial", "x", dialing(a.at), a.alice)
	_, s := next[*ConnectRequest](a.owner)
	a.owner.send(s, &Accept{})
	recorded := a.p.answer()
	next[*Established](a.owner)
	for range 3 {
		if got := a.p.do("raw_dial", "y", dialing(a.at), does{"request": recorded.Request}); got.Rejected || got.Reply == recorded.Reply {
			t.Errorf("the copy's answer is %s", a.p.last)
		}
		a.p.do("raw", "y", does{"data": recorded.First})
		a.p.do("drained", "y")
	}
	a.owner.quiet()
	a.p.do("goodbye", "x")
	until[*Closed](a.owner)
	a.honest()

	var reply string
	for i := range 3 {
		more := does{"reject": true} // the first one is answered in full
		if i > 0 {
			more = does{"replay": reply}
		}
		a.client.send(a.rt.CreateID(a.client.pid, secured(t)), &Dial{Addr: "127.0.0.1:" + a.port})
		got := a.p.tries("serve", "listener", a.alice, more)
		a.p.begin("drained", "listener")
		if i == 0 {
			reply = got.Reply
			next[*Rejected](a.client)
			next[*Closed](a.client)
		} else if err := refusedHandshake(t, a.client); err != nil {
			is(t, err, unix.EACCES)
		}
		a.p.answer()
	}
}

// TestPythonStrips: less security than both sides have is refused on both sides.
func TestPythonStrips(t *testing.T) {
	a := startAttack(t)
	honest := unhex(t, a.p.do("dial", "x", dialing(a.at), a.alice, does{"half": true}).Request)
	a.p.do("close", "x")
	edit := func(f func(b []byte)) []byte { b := slices.Clone(honest); f(b); return b }
	for name, request := range map[string][]byte{
		"nothing":       {},
		"hello alone":   edit(func(b []byte) { b[3], b[6] = 0, 0 })[:12],
		"no features":   edit(func(b []byte) { b[6] = 0 }),
		"TLS":           edit(func(b []byte) { b[6] = 2 }),
		"both modes":    edit(func(b []byte) { b[6] = 3 }),
		"version 2":     edit(func(b []byte) { b[2] = 2 }),
		"version 1":     edit(func(b []byte) { b[2] = 1 }),
		"a zero key":    edit(func(b []byte) { clear(b[16:48]) }),
		"a low order":   edit(func(b []byte) { clear(b[16:48]); b[16] = 1 }),
		"another id":    edit(func(b []byte) { b[50] ^= 1 }),
		"cut":           edit(func(b []byte) { b[3]-- })[:len(honest)-1],
		"longer":        append(edit(func(b []byte) { b[3]++ }), 0),
		"a byte behind": append(slices.Clone(honest), 1),
	} {
		if got := a.p.tries("raw_dial", "x", dialing(a.at), does{"request": request, "timeout": 5}); !got.Rejected && !contains(got.Error, "Ended") {
			t.Errorf("%s: the answer is %s", name, a.p.last)
		}
		a.p.do("close", "x")
	}
	a.owner.quiet()
	for name, more := range map[string]does{
		"version 2":   {"version": 2},
		"no features": {"features": 0},
		"ChaCha":      {"features": 5},
		"TLS":         {"features": 2},
		"nothing":     {"replay": ""},
	} {
		a.client.send(a.rt.CreateID(a.client.pid, secured(t)), &Dial{Addr: "127.0.0.1:" + a.port})
		a.p.tries("serve", "listener", a.alice, more)
		a.p.begin("drained", "listener")
		if err := refusedHandshake(t, a.client); err != nil {
			is(t, err, unix.EACCES)
		} else {
			t.Error(name)
		}
		a.p.answer()
	}
	a.honest()
}

// TestPythonHalfHandshakes: handshakes that stop after the reply are bounded and shut out no honest
// peer, although none of them times out. At the bound the oldest give way.
func TestPythonHalfHandshakes(t *testing.T) {
	const places, halves = 40, 60
	a := startAttack(t, Config{Limits: Limits{Handshakes: places}, Timeouts: Timeouts{Request: time.Hour}})
	for i := range halves {
		got := a.p.tries("dial", fmt.Sprint(i), dialing(a.at), a.alice, does{"half": true})
		if !got.Rejected && got.Error != "" {
			t.Fatal(got.Error)
		}
	}
	a.owner.quiet()
	time.Sleep(2 * limits.Grace) // the youngest may give way, too, however fast this machine is
	a.honest()
	for {
		waiting := len(a.rt.Inspect()) - 1 // without the listener
		if waiting <= places/2 {           // the share of one address
			break
		}
		time.Sleep(time.Millisecond) // those that gave way are being destroyed
	}
	for i := range halves {
		a.p.do("close", fmt.Sprint(i))
	}
	a.owner.quiet()
}

// TestPythonGarbage: thousands of connections with nonsense, and an honest client among them.
func TestPythonGarbage(t *testing.T) {
	a := startAttack(t)
	vandal := startPython(t)
	vandal.begin("garbage", "", dialing(a.at), a.alice, does{"count": 3000})
	done := make(chan answered, 1)
	go func() { done <- vandal.answer() }()
	served := 0
	for {
		a.honest()
		served++
		select {
		case got := <-done:
			if got.Error != "" || served < 3 {
				t.Errorf("%d were served, %s", served, got.Error)
			}
			a.honest()
			a.owner.quiet()
			return
		default:
		}
	}
}
