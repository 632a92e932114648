package actor

import (
	"context"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
)

// The rule of rdma_getaddrinfo(3) for ai_connect applies to Dial by name as well: it goes first,
// the user's own data behind it.
// manpages: getaddrinfo-43
func TestDialSendsAIConnect(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.rt.resolve = func(context.Context, string, string, *cmid.AddrInfo) ([]cmid.AddrInfo, error) {
			return []cmid.AddrInfo{{Dst: MustAddr(there + ":7471"), Connect: []byte("head")}}, nil
		}
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		id := w.rt.CreateID(client.pid, IDConfig{})
		client.send(id, &Dial{Addr: "there:7471", PrivateData: []byte("user")})
		r, s := next[*ConnectRequest](server)
		if got := string(r.PrivateData); got != "headuser" {
			w.Errorf("the request carries %q, want ai_connect and then the user's data", got)
		}
		server.send(s, &Accept{})
		next[*Established](client)
		client.send(id, &Close{})
		until[*Closed](client)
	})
}

// The hints of a GetAddrInfo are those of the look-up.
// manpages: getaddrinfo-26
func TestHintsReachTheLookup(t *testing.T) {
	onFlavors(t, func(w *world) {
		hints := &cmid.AddrInfo{Flags: cmid.RAINumericHost | cmid.RAIPassive, Family: cmid.FamilyIPv4, Src: MustAddr("10.0.0.5:1")}
		w.rt.resolve = func(_ context.Context, node, service string, got *cmid.AddrInfo) ([]cmid.AddrInfo, error) {
			if node != "there" || service != "7471" || got.Flags != hints.Flags || got.Family != hints.Family || got.Src != hints.Src {
				w.Errorf("%q %q %+v is looked up, want %+v", node, service, got, hints)
			}
			return nil, cmid.EAINoName
		}
		p := w.probe()
		p.send(w.rt.CreateID(p.pid, IDConfig{}), &cmid.GetAddrInfo{Node: "there", Service: "7471", Hints: hints})
		f, _ := next[Failure](p)
		is(w, f, cmid.EAINoName)
	})
}
