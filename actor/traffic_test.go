package actor

import (
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// info returns Inspect's report on an identifier.
func (w *world) info(rt *Runtime, id *actor.PID) IDInfo {
	w.Helper()
	for _, i := range rt.Inspect() {
		if i.PID.Equal(id) {
			return i
		}
	}
	w.Fatalf("Inspect does not know %v", id)
	return IDInfo{}
}

// Messages that leave one side arrive at the other, and both have counted them.
func TestTrafficIsCounted(t *testing.T) {
	onAllKinds(t, func(w *world) {
		const eager, large = 2 << 10, 3 << 20
		p := w.connect(IDConfig{MaxMessage: large, Credits: 8, eager: eager})
		for _, n := range []int{0, 1, eager, eager + 1, large, 7} {
			p.client.send(p.c, NewSend(make([]byte, n)))
			next[*Received](p.server)
		}
		p.client.send(p.c, NewSend(make([]byte, large+1))) // is not sent
		next[*SendFailed](p.client)
		p.server.send(p.s, NewSend([]byte("back")))
		next[*Received](p.client)
		settle()
		const bytes = 0 + 1 + eager + eager + 1 + large + 7
		want := Traffic{Sent: 6, SentBytes: bytes, LargeSent: 2, Received: 1, ReceivedBytes: 4}
		if got := w.info(w.rt, p.c).Traffic; got != want {
			w.Errorf("the client has counted %+v\nwant %+v", got, want)
		}
		want = Traffic{Sent: 1, SentBytes: 4, Received: 6, ReceivedBytes: bytes, LargeReceived: 2}
		if got := w.info(w.far, p.s).Traffic; got != want {
			w.Errorf("the server has counted %+v\nwant %+v", got, want)
		}
	})
}

// One-sided operations are counted when they have succeeded.
func TestOneSidedTrafficIsCounted(t *testing.T) {
	onAllDevices(t, func(w *world) {
		p := w.connect(IDConfig{Memory: 200})
		key := grant(p.server, p.s, memory(p.server, p.s, 100, rw))
		near := memory(p.client, p.c, 100, rw)
		p.client.send(p.c, &Read{Key: key, Memory: near, Length: 8})
		next[*ReadDone](p.client)
		p.client.send(p.c, &Write{Key: key, Memory: near, Length: 16})
		next[*WriteDone](p.client)
		p.client.send(p.c, &Write{Key: key, Memory: near, Length: 0})
		next[*WriteDone](p.client)
		p.client.send(p.c, &Write{Key: key, Memory: near, Length: 101})
		next[*AccessError](p.client)
		want := Traffic{Reads: 1, ReadBytes: 8, Writes: 2, WriteBytes: 16}
		if got := w.info(w.rt, p.c).Traffic; got != want {
			w.Errorf("counted %+v\nwant %+v", got, want)
		}
		if got := w.info(w.far, p.s).Traffic; got != (Traffic{}) {
			w.Errorf("the peer has counted %+v", got)
		}
		var c *datapath.Conn
		w.onLoop(w.rt, func(l *loop) { c = w.conn(l, p.c) })
		key.RKey++ // not granted by the peer: its device refuses it
		p.client.send(p.c, &Read{Key: key, Memory: near, Length: 8})
		next[*AccessError](p.client)
		w.onLoop(w.rt, func(*loop) {
			if got := c.Traffic(); got != want {
				w.Errorf("with an operation that has failed: %+v\nwant %+v", got, want)
			}
		})
	})
}

// The time in which a message waits for credits is counted, and the present wait shows.
func TestWaitsForCreditsAreCounted(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Credits: 2})
		var kept []*Received
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				m.Retain()
				kept = append(kept, m)
			}
		})
		for range 2 {
			p.client.send(p.c, NewSend([]byte("x")))
			next[*Received](p.server)
		}
		settle()
		if got := w.info(w.rt, p.c).Traffic; got.CreditWaits != 0 || got.CreditWait != 0 || got.WaitsFor != 0 {
			w.Errorf("nothing waits, and it has counted %+v", got)
		}
		for range 3 {
			p.client.send(p.c, NewSend([]byte("x")))
		}
		time.Sleep(10 * time.Second)
		if got := w.info(w.rt, p.c).Traffic; got.CreditWaits != 1 || got.CreditWait != 10*time.Second || got.WaitsFor != 10*time.Second {
			w.Errorf("after 10 s: %+v", got)
		}
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
			kept = nil
		})
		next[*Received](p.server)
		next[*Received](p.server)
		time.Sleep(10 * time.Second)
		got := w.info(w.rt, p.c).Traffic
		waits := got.CreditWaits // the two credits come together, or one after the other
		if waits < 2 || waits > 3 || got.CreditWait != 20*time.Second || got.WaitsFor != 10*time.Second {
			w.Errorf("when two of three are sent: %+v", got)
		}
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
			kept = nil
		})
		next[*Received](p.server)
		time.Sleep(10 * time.Second)
		if got := w.info(w.rt, p.c).Traffic; got.CreditWaits != waits || got.CreditWait != 20*time.Second || got.WaitsFor != 0 {
			w.Errorf("when the wait is over: %+v", got)
		}
		w.onLoop(w.far, func(*loop) {
			for _, m := range kept {
				m.Release()
			}
		})
	})
}

// Who keeps its messages until there are credits waits, too, and no wait outlasts the connection.
func TestWaitsForCreditsEnd(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{Credits: 1})
		p.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		p.client.send(p.c, NewSend([]byte("x")))
		next[*Received](p.server)
		var c *datapath.Conn
		w.onLoop(w.rt, func(l *loop) {
			c = w.conn(l, p.c)
			if c.TryPost(&NewSend([]byte("y")).out) {
				w.Error("a message was posted without credits")
			}
		})
		time.Sleep(10 * time.Second)
		if got := w.info(w.rt, p.c).Traffic; got.CreditWaits != 1 || got.WaitsFor != 10*time.Second {
			w.Errorf("counted %+v", got)
		}
		p.client.send(p.c, &DestroyID{})
		until[*Closed](p.client)
		time.Sleep(10 * time.Second)
		w.onLoop(w.rt, func(*loop) {
			if got := c.Traffic(); got.CreditWaits != 1 || got.CreditWait != 10*time.Second || got.WaitsFor != 0 {
				w.Errorf("after the end: %+v", got)
			}
		})
	})
}

// Each request of a listener is counted once, by what became of it.
func TestRequestsAreCounted(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		lis := w.listen(server, IDConfig{RefuseForeign: true, Route: func(r *ConnectRequest) (*actor.PID, *Reject) {
			switch string(r.PrivateData[:1]) {
			case "r":
				return nil, &Reject{}
			case "p":
				panic("Route")
			}
			return nil, nil
		}})
		dial := func(what string, cfg ...IDConfig) *actor.PID {
			id := w.rt.CreateID(client.pid, one(cfg))
			client.send(id, &Dial{Addr: there + ":7471", PrivateData: []byte(what)})
			return id
		}
		request := func() *actor.PID {
			gs := until[*ConnectRequest](server)
			return gs[len(gs)-1].sender
		}
		check := func(what string, want ListenerInfo) {
			w.Helper()
			settle()
			got := w.info(w.far, lis).Listener
			if got == nil || *got != want {
				w.Errorf("%s: counted %+v\nwant %+v", what, got, want)
			}
		}
		check("at first", ListenerInfo{})
		dial("a")
		s := request()
		check("a request", ListenerInfo{Requests: 1, Pending: 1})
		server.send(s, &Accept{})
		next[*Established](client)
		next[*Established](server)
		want := ListenerInfo{Requests: 1, Accepted: 1}
		check("accepted", want)
		dial("b")
		server.send(request(), &Reject{})
		until[*Rejected](client)
		want.Requests, want.Rejected = 2, 1
		check("rejected", want)
		dial("r")
		until[*Rejected](client)
		want.Requests, want.Rejected = 3, 2
		check("rejected by Route", want)
		dial("p")
		until[*Rejected](client)
		want.Requests, want.Refused.Failed = 4, 1
		check("Route has panicked", want)
		dial("f", IDConfig{Raw: true})
		until[*Rejected](client)
		want.Requests, want.Refused.Foreign = 5, 1
		check("a foreign peer", want)
		dial("t")
		request()
		until[*Rejected](client)
		want.Requests, want.TimedOut = 6, 1
		check("nobody has answered", want)
		dial("d")
		server.send(request(), &DestroyID{})
		until[*Rejected](client)
		want.Requests, want.Dropped = 7, 1
		check("destroyed", want)
		w.far.count.Add(100_000)
		dial("l")
		until[*Rejected](client)
		want.Requests, want.Refused.Limits = 8, 1
		check("too many identifiers", want)
		w.far.count.Add(-100_000)
		w.far.closing.Store(true)
		dial("c")
		until[*Rejected](client)
		want.Requests, want.Refused.Closing = 9, 1
		check("the runtime shuts down", want)
		w.far.closing.Store(false)
	}, Config{Timeouts: Timeouts{Request: time.Second}, Loops: make([]eventloop.Config, 3)})
}

// Loops reports the memory and the devices of a loop.
func TestPoolsAreReported(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect(IDConfig{Memory: 300})
		memory(p.client, p.c, 200, rw)
		p.server.send(p.s, NewSend(make([]byte, 100)))
		p.client.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		next[*Received](p.client)
		l := w.rt.Loops()[0]
		pools := make(map[string]PoolInfo)
		for _, m := range l.Memory {
			pools[m.Name] = m
			if m.Used > m.Registered || m.Registered > m.Limit {
				w.Errorf("%+v", m)
			}
		}
		if r := pools["receive"]; r.Limit != 1<<20 || r.Used < 100 {
			w.Errorf("%+v", r)
		}
		if o := pools["one-sided"]; o != (PoolInfo{Name: "one-sided", Limit: 1000, Registered: 200, Used: 200}) {
			w.Errorf("%+v", o)
		}
		if pools["large"].Limit != 1<<30 || pools["send"].Limit != 1<<30 {
			w.Errorf("%+v", pools)
		}
		if d := l.Devices; len(d) != 1 || d[0] != (DeviceInfo{Name: "mem0", Connections: 1, Queues: 1, Held: 1, Memory: 200}) {
			w.Errorf("%+v", d)
		}
		if l.AsOf.IsZero() || l.Blocked != nil {
			w.Errorf("%+v", l)
		}
	}, Config{Limits: Limits{ReceiveMemory: 1 << 20, Memory: 1000}})
}
