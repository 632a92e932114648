package actor

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// unenclosed hides that the twin is in memory, as a device with a network does.
type unenclosed struct{ cmid.Driver }

type unenclosedInstance struct{ cmid.Instance }

func (d unenclosed) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	in, err := d.Driver.Open(l, up)
	return unenclosedInstance{in}, err
}

func networked(d cmid.Driver) cmid.Driver { return unenclosed{d} }

func inNetwork(t *testing.T, test func(w *world), cfg ...Config) {
	t.Helper()
	for name, f := range flavors {
		t.Run(name, func(t *testing.T) { inWorldOfTwo(t, f, networked, networked, test, cfg...) })
	}
}

// exposed checks that err names the missing setting, and both ways out.
func exposed(tb testing.TB, what string, err error) {
	tb.Helper()
	if !errors.Is(err, ErrNoSecurity) || !errors.Is(err, unix.EACCES) {
		tb.Errorf("%s: %v", what, err)
		return
	}
	for _, word := range []string{"beyond loopback", "Mode: PSK", "Mode: Insecure", "Config.Security", "IDConfig.Security"} {
		if !strings.Contains(err.Error(), word) {
			tb.Errorf("%s: the error does not say %q: %v", what, word, err)
		}
	}
}

func TestBeyondLoopbackNeedsSecurity(t *testing.T) {
	inNetwork(t, func(w *world) {
		serve := []string{there + ":7471", ":7471", "0.0.0.0:7471", "[::]:7471"}
		for _, addr := range serve {
			p := w.farProbe()
			p.send(w.far.CreateID(p.pid, IDConfig{}), &Serve{Addr: addr})
			f, _ := next[*cmid.CommandFailed](p)
			exposed(w, "Serve "+addr, f)
			end, _ := next[*Closed](p)
			exposed(w, "the end of Serve "+addr, end.Err)
		}
		for _, addr := range []string{there + ":7471", here + ":7471", "[::ffff:" + there + "]:7471", "[2001:db8::1]:7471"} {
			p := w.probe()
			p.send(w.rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: addr})
			f, _ := next[*cmid.CommandFailed](p)
			exposed(w, "Dial "+addr, f)
			next[*Closed](p)
		}
	})
}

// The steps of librdmacm are refused, too, and an identifier that was refused goes on.
func TestBeyondLoopbackStepByStep(t *testing.T) {
	inNetwork(t, func(w *world) {
		p := w.probe()
		id := w.rt.CreateID(p.pid, IDConfig{})
		p.send(id, &cmid.ResolveAddr{Dst: cmid.MustAddr(there + ":7471")})
		f, _ := next[*cmid.CommandFailed](p)
		exposed(w, "ResolveAddr", f)
		p.send(id, &cmid.BindAddr{Addr: cmid.MustAddr(here + ":7471")})
		next[*cmid.Bound](p)
		p.send(id, &cmid.Listen{})
		f, _ = next[*cmid.CommandFailed](p)
		exposed(w, "Listen after BindAddr", f)
		p.send(id, &cmid.DestroyID{})
		next[*Closed](p)
	})
}

// With a Security identifiers may use any address, and so may Raw and Manual identifiers.
func TestBeyondLoopbackWithSecurity(t *testing.T) {
	for name, cfg := range map[string]func(w *world) IDConfig{
		"insecure": func(*world) IDConfig { return IDConfig{Security: &Security{Mode: Insecure}} },
		"PSK":      func(w *world) IDConfig { return secured(w) },
		"raw":      func(*world) IDConfig { return IDConfig{Raw: true} },
		"manual":   func(*world) IDConfig { return IDConfig{Manual: true} },
	} {
		t.Run(name, func(t *testing.T) {
			inNetwork(t, func(w *world) {
				server, client := w.farProbe(), w.probe()
				listen(server, w.far, there+":7471", cfg(w))
				client.send(w.rt.CreateID(client.pid, cfg(w)), &Dial{Addr: there + ":7471"})
				next[*ConnectRequest](server)
			})
		})
	}
	t.Run("of the runtime", func(t *testing.T) {
		inNetwork(t, func(w *world) { w.connect() }, Config{Security: &Security{Mode: Insecure}})
	})
}

// On the embedded device of this machine: loopback needs nothing, whatever it is called, and this
// machine's own address is beyond.
func TestLoopbackNeedsNoSecurity(t *testing.T) {
	rt := openIWARP(t, testSystem(t))
	for _, ip := range []string{"127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "localhost"} {
		server, client := newProbe(t, rt.sys, rt.OnLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
		_, at := listen(server, rt, ip+":0")
		client.send(rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: at})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](client)
	}
	beyond := []string{":0", "192.0.2.1:0"}
	for _, own := range ownAddresses(t) {
		beyond = append(beyond, net.JoinHostPort(own, "0"))
	}
	for _, addr := range beyond {
		p := newProbe(t, rt.sys, rt.OnLoop(), nil)
		p.send(rt.CreateID(p.pid, IDConfig{}), &Serve{Addr: addr})
		f, _ := next[Failure](p)
		if addr != "192.0.2.1:0" { // not this host's: it cannot be bound
			exposed(t, addr, f)
		}
		next[*Closed](p)
	}
}

// ownAddresses returns this machine's addresses beyond loopback.
func ownAddresses(tb testing.TB) (list []string) {
	tb.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		tb.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			list = append(list, p.Addr().String())
		}
	}
	return list
}
