package actor

import (
	"crypto/tls"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// A handshake waits for its place, in both modes.
func TestHandshakesWaitForAPlace(t *testing.T) {
	onSecured(t, func(w *world, secured mode) {
		all := &w.far.computing
		for range all.Most {
			all.Enter(netip.Addr{}, func() {})
		}
		server, client := w.farProbe(), w.probe()
		w.listen(server, secured(w))
		client.send(w.rt.CreateID(client.pid, secured(w)), &Dial{Addr: there + ":7471"})
		time.Sleep(time.Second)
		settle()
		server.quiet()
		for range all.Most {
			all.Leave(netip.Addr{})
		}
		_, id := next[*ConnectRequest](server)
		server.send(id, &Accept{})
		next[*Established](server)
		next[*Established](client)
	})
}

// User code that blocks in a handshake delays the computation of no other handshake.
func TestUsersCodeHasNoPlace(t *testing.T) {
	onFlavors(t, func(w *world) {
		k, server := newCerts(w), w.farProbe()
		release := make(chan struct{})
		var blocked atomic.Int64
		k.server.TLS.VerifyConnection = func(tls.ConnectionState) error {
			if blocked.Add(1) <= int64(2*w.far.computing.Most) {
				<-release
			}
			return nil
		}
		w.listen(server, IDConfig{Security: k.server})
		client := w.probe()
		for range 2*w.far.computing.Most + 1 {
			client.send(w.rt.CreateID(client.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
			time.Sleep(time.Millisecond)
			settle()
		}
		next[*ConnectRequest](server)
		server.quiet()
		close(release)
		for range 2 * w.far.computing.Most {
			next[*ConnectRequest](server)
		}
		settle()
		all, free := &w.far.computing, 0
		for range all.Most {
			all.Enter(netip.Addr{}, func() { free++ })
		}
		if free != all.Most {
			w.Errorf("%d of %d places are free", free, all.Most)
		}
		for range free {
			all.Leave(netip.Addr{})
		}
	})
}

// BenchmarkEchoDuringHandshakes measures an echo on an existing connection, while all TLS
// handshakes of strangers are computed at the same time.
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
