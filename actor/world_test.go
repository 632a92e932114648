package actor

import (
	"hash/fnv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/eventloop/eventlooptest"
	"github.com/rdmactor/rdmactor/states"
)

// world is two hosts of the twin in a synctest bubble, with a runtime on each: mem0 with 10.0.0.5
// and mem1 with 10.0.0.7.
//
// It is not actortest's world: that package imports this one, so a test in package actor cannot
// import it without a circle. These tests look at objects without an exported name (an identifier's
// connection, its budgets, its mailbox); those that do not are in package actor_test.
type world struct {
	testing.TB
	flavor states.Flavor // of its devices
	f      *cmidtest.Fabric
	sys    *actor.ActorSystem
	rt     *Runtime     // here
	far    *Runtime     // there
	remote []*actor.PID // whom Proto.Actor was asked to reach elsewhere
}

// here and there are the twin's addresses.
const here, there = "10.0.0.5", "10.0.0.7"

// inWorld runs test in virtual time, and shuts everything down within it.
func inWorld(t *testing.T, flavor states.Flavor, test func(w *world), cfg ...Config) {
	t.Helper()
	inWorldOver(t, flavor, untouched, test, cfg...)
}

func untouched(d cmid.Driver) cmid.Driver { return d }

// inWorldOver puts a driver of the test's before the twin here.
func inWorldOver(t *testing.T, flavor states.Flavor, over func(cmid.Driver) cmid.Driver, test func(w *world), cfg ...Config) {
	t.Helper()
	inWorldOfTwo(t, flavor, over, untouched, test, cfg...)
}

// inWorldOfTwo puts drivers of the test's before the twin here and there.
func inWorldOfTwo(
	t *testing.T, flavor states.Flavor, over, overFar func(cmid.Driver) cmid.Driver, test func(w *world), cfg ...Config,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Proto.Actor's throttle of dead letters ends after a second
		t.Cleanup(func() { time.Sleep(time.Second) })
		w := &world{TB: t, flavor: flavor, f: cmidtest.NewFabric(cmidtest.Config{Flavor: flavor, Seed: seedOf(t.Name())}), sys: testSystem(t)}
		w.f.AddDevice("mem0", here)
		w.f.Host("far").AddDevice("mem1", there)
		w.rt = w.open(over(w.f.Driver()), one(cfg))
		w.far = w.open(overFar(w.f.Host("far").Driver()), one(cfg))
		test(w)
		for _, m := range w.f.Missed() { // or it has not tested its own claim
			t.Error(m)
		}
	})
}

func (w *world) open(d cmid.Driver, cfg Config) *Runtime {
	w.Helper()
	cfg.Device, cfg.Loops = d, virtual(cfg.Loops)
	return openRuntime(w, w.sys, cfg)
}

// virtual makes loops run on the bubble's time: one if none is given.
func virtual(given []eventloop.Config) []eventloop.Config {
	loops := make([]eventloop.Config, max(len(given), 1))
	copy(loops, given)
	for i := range loops {
		loops[i].Poller, loops[i].CheckGoroutine = eventlooptest.NewPoller(), true
	}
	return loops
}

// flavors are the devices the twin plays.
var flavors = map[string]states.Flavor{"iwarp": states.IWARP, "infiniband": 0}

// onFlavors runs test once for each.
func onFlavors(t *testing.T, test func(w *world), cfg ...Config) {
	t.Helper()
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) { inWorld(t, f, test, cfg...) })
	}
}

// probe makes an owner on the loop here, farProbe there.
func (w *world) probe() *probe    { return newProbe(w, w.sys, w.rt.OnLoop(), nil) }
func (w *world) farProbe() *probe { return newProbe(w, w.sys, w.far.OnLoop(), nil) }

// listen makes a probe listen there.
func (w *world) listen(p *probe, cfg ...IDConfig) *actor.PID {
	w.Helper()
	id, _ := listen(p, w.far, there+":7471", cfg...)
	return id
}

// connect makes a connection from here to there.
func (w *world) connect(cfg ...IDConfig) pair {
	w.Helper()
	p := pair{client: w.probe(), server: w.farProbe()}
	p.listener = w.listen(p.server, cfg...)
	p.c = w.rt.CreateID(p.client.pid, one(cfg))
	p.client.send(p.c, &Dial{Addr: there + ":7471"})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	return p
}

// settle lets everything happen that does not wait for a clock.
func settle() { synctest.Wait() }

// state returns an identifier's state; false when it is gone.
func (w *world) state(id *actor.PID) (states.State, bool) {
	for _, i := range append(w.rt.Inspect(), w.far.Inspect()...) {
		if i.PID.Equal(id) {
			return i.State, true
		}
	}
	return 0, false
}

// elapsed calls fn and returns how long that took.
func elapsed(fn func()) time.Duration {
	begin := time.Now()
	fn()
	return time.Since(begin)
}

// seedOf makes chance differ from test to test, and stay the same from run to run.
func seedOf(name string) uint64 {
	h := fnv.New64()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}
