package metrics

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// keys returns one identity's keys, for both sides.
func keys(t *testing.T, identity string) *rdma.Security {
	t.Helper()
	c := rdma.Credential{Identity: identity}
	copy(c.Key[:], identity)
	k := new(rdma.Keyring)
	if err := k.Use(c); err != nil {
		t.Fatal(err)
	}
	if err := k.Accept(c); err != nil {
		t.Fatal(err)
	}
	return &rdma.Security{Mode: rdma.PSK, Keys: k}
}

// Handshakes are counted by outcome, and no metric contains an identity.
func TestHandshakes(t *testing.T) {
	sys, rt := open(t, "a")
	at, up, ended := make(chan rdma.Addr, 1), make(chan bool, 2), make(chan bool, 4)
	owner := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *rdma.Listening:
			at <- m.Local
		case *rdma.ConnectRequest:
			ctx.Respond(&rdma.Accept{})
		case *rdma.Established:
			up <- true
		case *rdma.Closed:
			ended <- true
		}
	}, rt.OnLoop()))
	l := rt.CreateID(owner, rdma.IDConfig{Security: keys(t, "alice")})
	sys.Root.RequestWithCustomSender(l, &rdma.Serve{Addr: "127.0.0.1:0"}, owner)
	address := (<-at).String()
	dial := func(identity string) {
		c := rt.CreateID(owner, rdma.IDConfig{Security: keys(t, identity)})
		sys.Root.RequestWithCustomSender(c, &rdma.Dial{Addr: address}, owner)
	}
	dial("alice")
	for range 2 {
		<-up
	}
	dial("mallory")
	<-ended
	s := New(Config{Runtime: rt})
	var got []Sample
	for over := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got = s.Read(context.Background())
		if n, _ := value(got, "rdmactor_listener_refused_total", address, "unauthenticated"); n == 1 || time.Now().After(over) {
			break
		}
	}
	for _, side := range []string{"client", "server"} {
		want(t, got, 2, "rdmactor_handshake_begun_total", "a", side)
		want(t, got, 1, "rdmactor_handshake_completed_total", "a", side)
		want(t, got, 1, "rdmactor_handshake_failed_total", "a", side, "unknown key")
		want(t, got, 0, "rdmactor_handshake_failed_total", "a", side, "tampered")
	}
	want(t, got, 2, "rdmactor_secured_connections", "a")
	want(t, got, 0, "rdmactor_secured_tampered_connections_total", "a")
	want(t, got, 1, "rdmactor_listener_refused_total", address, "unauthenticated")
	for _, sample := range got {
		for _, v := range sample.Values {
			if v == "alice" || v == "mallory" {
				t.Errorf("%s has an identity: %q", sample.Name(), v)
			}
		}
	}
}
