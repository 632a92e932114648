package actor

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// A Keyring has a key for peers that are dialled by a name, and another one for the others.
func TestKeyForName(t *testing.T) {
	onFlavors(t, func(w *world) {
		server, client := w.farProbe(), w.probe()
		listens := psk(w)
		if err := listens.Keys.Accept(credential("alice", 1), credential("pair", 9)); err != nil {
			w.Fatal(err)
		}
		w.listen(server, IDConfig{Security: listens})
		dials := psk(w)
		addr := there + ":7471"
		if err := errors.Join(dials.Keys.UseFor(addr, credential("pair", 9)), dials.Keys.UseFor("nobody", credential("nobody", 9))); err != nil {
			w.Fatal(err)
		}
		for _, dial := range []struct {
			name, identity string
			forget         bool
		}{{"", "pair", false}, {addr, "pair", false}, {"another", "alice", false}, {"", "alice", true}} {
			if dial.forget {
				dials.Keys.Forget(addr)
			}
			c := w.rt.CreateID(client.pid, IDConfig{Security: dials})
			client.send(c, &Dial{Addr: addr, Name: dial.name})
			r, s := next[*ConnectRequest](server)
			if r.Identity != dial.identity {
				w.Errorf("dialled as %q it is %q", dial.name, r.Identity)
			}
			server.send(s, &Reject{})
			until[*Closed](client)
			until[*Closed](server)
		}
		c := w.rt.CreateID(client.pid, IDConfig{Security: dials})
		client.send(c, &Dial{Addr: addr, Name: "nobody"})
		f, _ := next[*Rejected](client)
		is(w, f, unix.EACCES)
		until[*Closed](client)
	})
	if err := new(Keyring).UseFor("x", Credential{}); !errors.Is(err, unix.EINVAL) {
		t.Error(err)
	}
}
