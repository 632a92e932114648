package actor

import (
	"bytes"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/states"
)

// onKernelLikeSecured runs onKernelLike for each mode.
func onKernelLikeSecured(t *testing.T, like kernelLike, test func(w *world, near *kernelLike, cfg IDConfig)) {
	t.Helper()
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		onKernelLike(t, like, func(w *world, near, _ *kernelLike) { test(w, near, IDConfig{Security: made(w)}) })
	})
}

// A device that refuses every second post makes no record come twice, late or not at all.
func TestOwedRecords(t *testing.T) {
	onKernelLikeSecured(t, kernelLike{fail: 2}, func(w *world, _ *kernelLike, cfg IDConfig) {
		p := w.connect(cfg)
		const n = 200
		for i := range n {
			p.client.send(p.c, NewSend(bytes.Repeat([]byte{byte(i)}, i*31%3000)))
			if i%7 == 0 {
				p.server.send(p.s, NewSend(nil))
			}
		}
		for i := range n {
			g := p.server.any()
			if g.data != string(bytes.Repeat([]byte{byte(i)}, i*31%3000)) {
				w.Fatalf("message %d is %v", i, g)
			}
		}
		time.Sleep(time.Second)
		p.client.send(p.c, &Close{})
		for _, side := range []*probe{p.server, p.client} {
			end := until[*Closed](side)
			if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Unknown+c.Unsent != 0 {
				w.Errorf("the end: %v", end)
			}
		}
	})
}

// Messages owed when the connection ends are answered, and their memory is released.
func TestOwedAtTheEnd(t *testing.T) {
	onKernelLikeSecured(t, kernelLike{}, func(w *world, near *kernelLike, cfg IDConfig) {
		cfg.MaxMessage = 4 * kib // in memory that connections share
		p := w.connect(cfg)
		w.onLoop(w.rt, func(*loop) { near.fail = 1 })
		p.client.send(p.c, NewSend(make([]byte, 3000)))
		p.client.send(p.c, NewSend(nil))
		settle()
		w.onLoop(w.rt, func(l *loop) {
			if !w.conn(l, p.c).Sec.Owes() {
				w.Error("nothing is owed")
			}
		})
		p.client.send(p.c, &DestroyID{})
		end := until[*Closed](p.client)
		if k := kinds(end); k != "SendFailed SendFailed Closed" {
			w.Errorf("the end: %v", end)
		}
		if c := end[len(end)-1].msg.(*Closed); c.Unknown != 1 || c.Unsent != 1 {
			w.Errorf("the end: %+v", c)
		}
		until[*Closed](p.server)
		w.onLoop(w.rt, func(l *loop) {
			for _, d := range l.Devices {
				for _, a := range d.Shared.Send {
					if a != nil && a.Out() != 0 {
						w.Errorf("%d pieces of memory to send from are still in use", a.Out())
					}
				}
			}
		})
	})
}

// A device that overlooks the request finds it a quarter of a second later, and the probe that was
// sent for that is answered.
func TestRequestIsOverlooked(t *testing.T) {
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		inWorld(t, states.IWARP, func(w *world) { w.overlooked(IDConfig{Security: made(w)}) })
	})
}

func (w *world) overlooked(cfg IDConfig) {
	w.Helper()
	w.f.Overlook(1)
	var p pair
	if d := elapsed(func() { p = w.connect(cfg) }); d < 200*time.Millisecond || d > time.Second {
		w.Errorf("connected after %v", d)
	}
	time.Sleep(time.Minute)
	p.client.send(p.c, NewSend([]byte("hello")))
	if g := p.server.any(); g.data != "hello" {
		w.Errorf("got %v", g)
	}
}
