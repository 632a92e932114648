package actor

import (
	"crypto/tls"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// No more steps are computed at a time than there are places for, and addresses take turns. A step
// that panics or calls runtime.Goexit gives its place back.
func TestComputingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := computing{most: 2}
		var mu sync.Mutex
		var order []string
		busy := 0
		step := func(name string, last func()) {
			c.do(netip.MustParseAddr("10.0.0."+name[:1]), func() {
				defer last()
				mu.Lock()
				busy++
				most := busy
				order = append(order, name)
				mu.Unlock()
				if most > c.most {
					t.Errorf("%d steps at a time", most)
				}
				time.Sleep(time.Second)
				mu.Lock()
				busy--
				mu.Unlock()
			})
		}
		for _, name := range []string{"1a", "1b", "1c", "1d", "1e", "1f", "2a", "2b", "3a"} {
			step(name, func() {})
		}
		step("3b", runtime.Goexit)
		time.Sleep(time.Minute)
		synctest.Wait()
		// the last two are computed at the same time, and either may be noted first
		if len(order) != 10 || c.busy != 0 || slices.Index(order, "3a") > 5 || slices.Index(order, "1f") < 8 {
			t.Errorf("%d steps are left, and the order was %v", c.busy, order)
		}
	})
}

// A handshake waits for its place, in both modes.
func TestHandshakesWaitForAPlace(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		all := &w.far.computing
		for range all.most {
			all.enter(netip.Addr{}, func() {})
		}
		server, client := w.farProbe(), w.probe()
		w.listen(server, secured(w))
		client.send(w.rt.CreateID(client.pid, secured(w)), &Dial{Addr: there + ":7471"})
		time.Sleep(time.Second)
		settle()
		server.quiet()
		for range all.most {
			all.leave()
		}
		_, id := next[*ConnectRequest](server)
		server.send(id, &Accept{})
		next[*Established](server)
		next[*Established](client)
	})
}

// Code of the user's that blocks in a handshake keeps no other handshake from being computed.
func TestUsersCodeHasNoPlace(t *testing.T) {
	onFlavors(t, func(w *world) {
		k, server := newCerts(w), w.farProbe()
		release := make(chan struct{})
		var blocked atomic.Int64
		k.server.TLS.VerifyConnection = func(tls.ConnectionState) error {
			if blocked.Add(1) <= int64(2*w.far.computing.most) {
				<-release
			}
			return nil
		}
		w.listen(server, IDConfig{Security: k.server})
		client := w.probe()
		for range 2*w.far.computing.most + 1 {
			client.send(w.rt.CreateID(client.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
			time.Sleep(time.Millisecond)
			settle()
		}
		next[*ConnectRequest](server)
		server.quiet()
		close(release)
		for range 2 * w.far.computing.most {
			next[*ConnectRequest](server)
		}
		settle()
		if n := w.far.computing.busy; n != 0 {
			w.Errorf("%d places are taken", n)
		}
	})
}

// BenchmarkEchoDuringHandshakes is how long an echo takes on a connection that there is, while
// strangers have all of their TLS handshakes computed at once.
func BenchmarkEchoDuringHandshakes(b *testing.B) {
	const strangers = 400
	sys := testSystem(b)
	limits := Limits{RequestRate: -1}
	near, far, hostile := openIWARP(b, sys, Config{Limits: limits}), openIWARP(b, sys, Config{Limits: limits}), openIWARP(b, sys)
	sec := mtls(b)
	sec.NoAddresses = true
	server := newProbe(b, sys, far.OnLoop(), nil)
	server.reactWith(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Respond(&Accept{})
		case *Received:
			ctx.Respond(NewSend(m.Data))
		}
	})
	_, at := listen(server, far, "127.0.0.1:0", IDConfig{Security: sec})
	echo := newProbe(b, sys, near.OnLoop(), nil)
	id := near.CreateID(echo.pid, IDConfig{Security: sec})
	echo.send(id, &Dial{Addr: at})
	next[*Established](echo)
	mallory := newProbe(b, sys, hostile.OnLoop(), nil)
	var took []time.Duration
	for b.Loop() {
		hellos := make(map[string]*Send)
		ids := make(map[string]*actor.PID)
		for range strangers {
			mallory.send(hostile.CreateID(mallory.pid, IDConfig{Raw: true}), &Dial{Addr: at, PrivateData: tlsHello})
			est, from := next[*Established](mallory)
			peer := secure.TLSPeer{
				Request: secure.Hello(tlsHello), Reply: secure.Hello(est.PrivateData), Receive: kib, ServerName: "alice",
				Binding: secure.Binding{Device: secure.DeviceIWARP},
			}
			c, err := secure.NewTLSClient(b.Context(), sec.TLS, peer)
			if err != nil {
				b.Fatal(err)
			}
			hellos[from.Id], ids[from.Id] = NewSend(c.Next()), from
			c.Close()
		}
		for name, m := range hellos {
			mallory.send(ids[name], m)
		}
		begin := time.Now()
		for n := 0; n < 20 || time.Since(begin) < 300*time.Millisecond; n++ {
			sent := time.Now()
			echo.send(id, NewSend([]byte("anybody there?")))
			for echo.any().data == "" {
			}
			took = append(took, time.Since(sent))
			time.Sleep(time.Millisecond)
		}
		for len(server.got) > 0 {
			<-server.got
		}
		for _, from := range ids {
			mallory.send(from, &Close{})
		}
		for closed := 0; closed < strangers; {
			if _, ok := mallory.any().msg.(*Closed); ok {
				closed++
			}
		}
	}
	slices.Sort(took)
	for name, part := range map[string]float64{"p50-us": 0.5, "p99-us": 0.99, "max-us": 1} {
		b.ReportMetric(float64(took[int(part*float64(len(took)-1))].Microseconds()), name)
	}
}
