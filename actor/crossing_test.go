package actor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// Ends that cross. Both sides, strangers, contexts and the device may end a connection in any
// order. Each command has one answer. Each owner gets Closed once, as the last event. An owner that
// has got Established gets the connection's end once before Closed.
func TestCrossingEnds(t *testing.T) {
	for flavor, f := range flavors {
		for _, takes := range []time.Duration{0, time.Second} {
			for seed := range uint64(30) {
				t.Run(fmt.Sprintf("%s/%v/%d", flavor, takes, seed), func(t *testing.T) {
					slow := func() *kernelLike {
						return &kernelLike{takes: map[states.Op]time.Duration{states.OpDestroyID: takes}}
					}
					inWorldOfTwo(t, f, slow().over, slow().over, func(w *world) { crossEnds(w, rand.New(rand.NewPCG(seed, 1))) })
				})
			}
		}
	}
}

// asker sends commands and counts what answers each.
type asker struct {
	*probe
	sent int
}

func crossEnds(w *world, rng *rand.Rand) {
	var cfg IDConfig
	if rng.IntN(4) == 0 {
		cfg.Raw = true
	}
	if rng.IntN(4) == 0 && w.flavor == states.IWARP {
		cfg.Manual = true
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	client, server := w.probe(), w.farProbe()
	w.listen(server, cfg)
	cfg.Context = ctx
	c := w.rt.CreateID(client.pid, cfg)
	client.send(c, &Dial{Addr: there + ":7471"})
	_, s := next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	next[*Established](client)
	w.f.Reorder(rng.IntN(2) == 0)
	strangers := []*asker{{probe: w.probe()}, {probe: w.farProbe()}, {probe: newProbe(w, w.sys, w.rt.OffLoop(), nil)}}
	clients, servers, removed := []*probe{client}, []*probe{server}, false
	for range 2 + rng.IntN(6) {
		who, id := strangers[rng.IntN(len(strangers))], c
		if rng.IntN(2) == 0 {
			id = s
		}
		var cmd any
		switch rng.IntN(11) {
		case 0, 1:
			cmd = &Disconnect{}
		case 2, 3:
			cmd = &Close{Timeout: time.Duration(rng.IntN(3)) * time.Second}
		case 4:
			cmd = &DestroyID{}
		case 5:
			w.sys.Root.Send(id, NewSend(make([]byte, rng.IntN(4000))))
		case 6:
			if rng.IntN(3) == 0 {
				cancel(fmt.Errorf("enough"))
			}
		case 7:
			w.onLoop(w.rt, func(l *loop) {
				for it := range l.ids {
					if it.pid.Equal(c) {
						it.BreakOff(&ProtocolError{What: "made up"})
					}
				}
			})
		case 8:
			cmd = &Call{Fn: func(*cmid.ID) error { return nil }}
		case 9:
			if rng.IntN(3) == 0 && !removed {
				removed = true
				w.f.RemoveDevice("mem0")
			}
		case 10:
			heir := newProbe(w, w.sys, w.rt.OnLoop(), nil)
			if id == c {
				clients = append(clients, heir)
			} else {
				servers = append(servers, heir)
			}
			who.sent++
			who.send(id, &Handover{To: heir.pid})
		}
		if cmd != nil {
			who.sent++
			who.send(id, cmd)
		}
		if rng.IntN(3) == 0 {
			time.Sleep(time.Duration(rng.IntN(3)) * time.Second / 2)
		}
	}
	time.Sleep(time.Second)
	w.sys.Root.Send(c, &DestroyID{})
	w.sys.Root.Send(s, &DestroyID{})
	time.Sleep(time.Minute)
	settle()
	for i, a := range strangers {
		if n := len(a.got); n != a.sent {
			w.Errorf("stranger %d has sent %d commands and got %d answers: %v", i, a.sent, n, drainProbe(a.probe))
		}
	}
	for name, owners := range map[string][]*probe{"client": clients, "server": servers} {
		ends, removals, closed, all := 0, 0, 0, []got{}
		for _, p := range owners { // one after the other
			all = append(all, drainProbe(p)...)
		}
		for _, g := range all {
			switch g.msg.(type) {
			case *Closed:
				closed++
				continue
			case *Disconnected:
				ends++
			case *DeviceRemoval:
				removals++
			case *actor.DeadLetterResponse:
				continue
			}
			if closed > 0 {
				w.Errorf("the %s gets more after Closed: %s", name, kinds(all))
			}
		}
		if ends > 1 || removals > 1 || closed != 1 {
			w.Errorf("the %s got %s", name, kinds(all))
		}
	}
}

func drainProbe(p *probe) (all []got) {
	for len(p.got) > 0 {
		all = append(all, <-p.got)
	}
	return all
}
