package network

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// TestAMiddleboxHangsUpOnce: the middlebox closes the first connection from a port when bytes
// arrive. The second one from there reaches the listener.
func TestAMiddleboxHangsUpOnce(t *testing.T) {
	r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond, MSS: 3}})
	l := r.listener(7, 4)
	r.b.HangUp(true)
	dial := func() int { return r.dialFromPort(10 * time.Millisecond) }
	first := dial()
	r.wantReady(r.pa, first, eventloop.Writable)
	r.wantReady(r.pb, l, 0)
	r.send(r.ka, first, "hello there")
	r.pass(10 * time.Millisecond)
	if n, err := r.ka.Recv(first, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("received %d, %v, want the end", n, err)
	}
	r.must(r.ka.SetLinger(first, &unix.Linger{Onoff: 1}))
	r.must(r.ka.Close(first))
	second := dial()
	r.pass(time.Second)
	r.wantReady(r.pb, l, eventloop.Readable)
	c, _, err := r.kb.Accept(l)
	r.must(err)
	r.send(r.ka, second, "hello")
	r.pass(10 * time.Millisecond)
	r.recv(r.kb, c, "hello")
	r.b.HangUp(false)
	r.must(r.ka.Close(second))
	r.must(r.kb.Close(c))
	r.must(r.kb.Close(l))
	r.pass(5 * time.Minute)
	if _, due := r.net.Next(); due {
		t.Error("something is still to happen")
	}
}

// dialFromPort connects from a fixed port to the second machine, and lets time pass.
func (r *rig) dialFromPort(d time.Duration) int {
	fd := r.socket(r.ka)
	r.must(r.ka.SetOption(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	r.must(r.ka.Bind(fd, sa(r.a.Addrs()[0].Addr(), 4444)))
	r.want(r.ka.Connect(fd, sa(addrB, 7)), unix.EINPROGRESS)
	r.pass(d)
	return fd
}

// TestAMiddleboxLetsTheSecondThrough: also when it was away in between, and when the second
// connection overtakes the reset of the first.
func TestAMiddleboxLetsTheSecondThrough(t *testing.T) {
	for name, between := range map[string]func(r *rig){
		"away in between": func(r *rig) {
			r.pass(10 * time.Millisecond)
			r.b.HangUp(false)
			r.b.HangUp(true)
		},
		"another one":     func(r *rig) { r.b.HangUp(true) },
		"overtaken reset": func(r *rig) { r.net.SetLink(r.a, r.b, Link{Delay: time.Millisecond}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
			l := r.listener(7, 4)
			r.b.HangUp(true)
			first := r.dialFromPort(10 * time.Millisecond)
			r.send(r.ka, first, "hello there")
			r.pass(10 * time.Millisecond)
			r.net.SetLink(r.a, r.b, Link{Delay: 5 * time.Millisecond})
			r.must(r.ka.SetLinger(first, &unix.Linger{Onoff: 1}))
			r.must(r.ka.Close(first))
			between(r)
			second := r.dialFromPort(100 * time.Millisecond)
			r.wantReady(r.pa, second, eventloop.Writable)
			r.wantReady(r.pb, l, eventloop.Readable)
		})
	}
}
