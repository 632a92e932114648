package actor

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// What connections have moved is part of the sum also when they have ended.
func TestTotals(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Credits: 8})
		p.client.send(p.c, NewSend([]byte("hello")))
		next[*Received](p.server)
		settle()
		l, far := w.rt.Loops()[0], w.far.Loops()[0]
		if l.States[states.Connected] != 1 || far.States[states.Connected] != 1 || far.States[states.Listening] != 1 {
			w.Errorf("states: %v, %v", l.States, far.States)
		}
		if len(far.Listeners) != 1 || far.Listeners[0].Accepted != 1 || !far.Listeners[0].Local.IsValid() || len(l.Listeners) != 0 {
			w.Errorf("listeners: %+v, %+v", far.Listeners, l.Listeners)
		}
		check := func(when string) {
			w.Helper()
			if got, want := w.rt.Loops()[0].Traffic, (Traffic{Sent: 1, SentBytes: 5}); got != want {
				w.Errorf("%s: sent %+v, want %+v", when, got, want)
			}
			if got, want := w.far.Loops()[0].Traffic, (Traffic{Received: 1, ReceivedBytes: 5}); got != want {
				w.Errorf("%s: received %+v, want %+v", when, got, want)
			}
		}
		check("connected")
		p.client.send(p.c, &Close{})
		until[*Closed](p.client)
		until[*Closed](p.server)
		settle()
		check("ended")
		if s := w.rt.Loops()[0].States; s != (LoopTotals{}).States {
			w.Errorf("after the end: %v", s)
		}
		p.server.send(p.listener, &DestroyID{})
		until[*Closed](p.server)
		settle()
		if l := w.far.Loops()[0]; len(l.Listeners) != 0 || l.EndedListeners != (ListenerInfo{Requests: 1, Accepted: 1}) {
			w.Errorf("after the listener's end: %+v, ended %+v", l.Listeners, l.EndedListeners)
		}
	})
}

// After Shutdown the sums are those of the end, whether they were asked for before or not, and no
// memory is left.
func TestTotalsAfterShutdown(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Credits: 8})
		_ = w.rt.Loops()
		p.client.send(p.c, NewSend([]byte("hello")))
		next[*Received](p.server)
		for _, rt := range []*Runtime{w.rt, w.far} {
			if err := rt.Shutdown(context.Background()); err != nil {
				w.Fatal(err)
			}
		}
		l, far := w.rt.Loops()[0], w.far.Loops()[0]
		if got, want := l.Traffic, (Traffic{Sent: 1, SentBytes: 5}); got != want {
			w.Errorf("sent %+v, want %+v", got, want)
		}
		if got, want := far.Traffic, (Traffic{Received: 1, ReceivedBytes: 5}); got != want {
			w.Errorf("received %+v, want %+v", got, want)
		}
		for _, m := range append(l.Memory, far.Memory...) {
			if m.Registered != 0 || m.Used != 0 {
				w.Errorf("memory is left: %+v", m)
			}
		}
		if l.States != (LoopTotals{}).States || len(far.Listeners) != 0 || len(l.Devices)+len(far.Devices) != 0 {
			w.Errorf("something is left: %+v, %+v", l, far)
		}
	})
}

// addTraffic forgets no field.
func TestAddTraffic(t *testing.T) {
	var one, sum Traffic
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanInt() {
			v.Field(i).SetInt(int64(time.Second))
		} else {
			v.Field(i).SetUint(1)
		}
	}
	addTraffic(&sum, one)
	if sum != one {
		t.Errorf("%+v, want %+v", sum, one)
	}
}

// Add forgets no field, either.
func TestAddListener(t *testing.T) {
	one := ListenerInfo{1, 1, 1, 1, 1, Refused{1, 1, 1, 1, 1, 1, 1, 1}, 1, 1, 1}
	var sum ListenerInfo
	if sum.Add(one); sum != one {
		t.Errorf("%+v, want %+v", sum, one)
	}
}
