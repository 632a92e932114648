package actor

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Several Disconnects of one connection have one answer, the connection's end, also if the later
// ones are sent before the goodbye of the first has left.
func TestDisconnectsWaitTogether(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		askers := []*probe{w.probe(), w.probe()}
		w.inTurn(func(actor.Context) {
			for _, a := range askers {
				a.send(p.c, &Disconnect{})
			}
		})
		first, _ := next[*Disconnected](askers[0])
		if second, _ := next[*Disconnected](askers[1]); second != first {
			w.Error("the second Disconnect has an answer of its own")
		}
		if k := kinds(until[*Closed](p.client)); k != "Disconnected Closed" {
			w.Errorf("the owner got %s", k)
		}
		until[*Closed](p.server)
	})
}

// If the device refuses the first, the others are answered, too.
func TestDisconnectsFailTogether(t *testing.T) {
	onKernelLike(t, kernelLike{}, func(w *world, near, _ *kernelLike) {
		p := w.connect()
		near.fails = map[states.Op]error{states.OpDisconnect: unix.ENOMEM}
		askers := []*probe{w.probe(), w.probe()}
		w.inTurn(func(actor.Context) {
			for _, a := range askers {
				a.send(p.c, &Disconnect{})
			}
		})
		for i, a := range askers {
			f, _ := next[*CommandFailed](a)
			is(w, f, unix.ENOMEM)
			if _, ok := f.Failed().(*cmid.Disconnect); !ok {
				w.Errorf("answer %d is about %v", i, f.Failed())
			}
		}
	})
}
