package reconnect_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// credential returns a version of the client's key.
func credential(version byte) rdma.Credential {
	return rdma.Credential{Identity: "client", Key: [32]byte{version}}
}

// keyrings returns those of the client and of its peer, which has one key.
func keyrings(t *testing.T) (client, server *rdma.Keyring) {
	t.Helper()
	client, server = new(rdma.Keyring), new(rdma.Keyring)
	if err := errors.Join(client.Use(credential(1)), server.Accept(credential(1))); err != nil {
		t.Fatal(err)
	}
	return client, server
}

func withKeys(k *rdma.Keyring) rdma.IDConfig {
	return rdma.IDConfig{Security: &rdma.Security{Mode: rdma.PSK, Keys: k}}
}

// A key is replaced in its three steps while messages flow: the connection stays, and the next one
// is made with the new key.
func TestKeysRotateWithoutACut(t *testing.T) {
	onFlavors(t, func(r *rig) {
		client, server := keyrings(r.t)
		r.serve(withKeys(server))
		r.spawn(reconnect.Config{ID: withKeys(client)})
		conn, up := r.accept()
		for i, step := range []func() error{
			func() error { return server.Accept(credential(1), credential(2)) },
			func() error { return client.Use(credential(2)) },
			func() error { return server.Accept(credential(2)) },
		} {
			if err := step(); err != nil {
				r.t.Fatal(err)
			}
			text := fmt.Sprint("after step ", i)
			r.send(uint64(i), text)
			r.hears(text)
		}
		if up.Generation != 1 {
			r.t.Errorf("the connection was cut: generation %d", up.Generation)
		}
		r.server.Send(conn, &rdma.DestroyID{})
		r.ended()
		r.untilDown()
		_, up = r.accept()
		if up.Generation != 2 || up.Established.Identity != "client" {
			r.t.Errorf("with the new key: %+v", up)
		}
		r.send(9, "anew")
		r.hears("anew")
		r.finish()
	})
}

// A peer that has no such key, or no longer has it, refuses the handshake. That refusal may be
// forged, so the actor continues, with pauses that grow, and reports the reason. When the peer has
// the key, they connect.
func TestKeyIsNotThere(t *testing.T) {
	onFlavors(t, func(r *rig) {
		client, server := keyrings(r.t)
		if err := server.Accept(); err != nil {
			r.t.Fatal(err)
		}
		r.serve(withKeys(server))
		d := newDiary(r.World, r.Runtime())
		reconnect.Spawn(r.Runtime(), d.pid, reconnect.Config{
			Dial: rdma.Dial{Addr: there}, ID: withKeys(client),
		})
		r.Advance(10 * time.Minute)
		attempts := 0
		d.read(r.World, func() {
			if d.closed != nil || d.ups > 0 {
				r.t.Fatalf("up %d times, closed %+v", d.ups, d.closed)
			}
			var refused *rdma.HandshakeError
			for _, down := range d.downs {
				if !errors.As(down.Err, &refused) {
					r.t.Errorf("an attempt has failed: %v", down.Err)
				}
			}
			attempts = len(d.downs)
		})
		// pauses of 15 s on average, after the first nine
		if attempts < 10 || attempts > 100 {
			r.t.Errorf("%d attempts in 10 minutes", attempts)
		}
		links := reconnect.Links(r.Runtime())
		var refused *rdma.HandshakeError
		if len(links) != 1 || !errors.As(links[0].LastErr, &refused) {
			r.t.Errorf("Links says %+v", links)
		}
		if err := server.Accept(credential(1)); err != nil {
			r.t.Fatal(err)
		}
		r.Advance(time.Minute)
	})
}
