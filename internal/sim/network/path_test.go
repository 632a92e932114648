package network

import (
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// elsewhere is a Path that relays all connections to one place.
type elsewhere struct{ to netip.AddrPort }

func (e elsewhere) Meet(Flow) netip.AddrPort     { return e.to }
func (e elsewhere) Pass(_ Flow, b []byte) []byte { return b }
func (e elsewhere) End(Flow) []byte              { return nil }

// TestRelay: a relayed connection reaches another listener, of the same machine or not. Both ends
// see the addresses that they would see otherwise, and each notices when the other one is gone.
func TestRelay(t *testing.T) {
	for _, to := range []string{"10.0.0.3:8", "10.0.0.2:8"} {
		for name, end := range map[string]func(r *rig, client, server int, k *Stack){
			"closed": func(r *rig, client, server int, k *Stack) {
				r.must(r.ka.Close(client))
				r.pass(time.Second)
				r.recv(k, server, "")
				r.must(k.Close(server))
			},
			"killed": func(r *rig, client, server int, k *Stack) {
				k.p.Kill()
				r.pass(time.Second)
				r.recv(r.ka, client, "")
				r.must(r.ka.Close(client))
			},
			"off": func(r *rig, client, server int, k *Stack) {
				k.p.m.PowerOff()
				r.tune(r.ka, client)
				r.send(r.ka, client, "is anybody there")
				r.errorWithin(r.pa, client, time.Minute)
				r.recvFails(r.ka, client, unix.ETIMEDOUT)
				r.must(r.ka.Close(client))
			},
		} {
			t.Run(to+" "+name, func(t *testing.T) {
				r := newRig(t, 1, Config{Link: Link{Delay: time.Millisecond}})
				c := r.net.Machine("c", prefix("10.0.0.3/24"))
				at := netip.MustParseAddrPort(to)
				k := r.kb
				if at.Addr() != addrB {
					k = c.Process(Limits{}).Stack()
				}
				r.net.OnPath(elsewhere{at})
				l := r.socket(k)
				r.must(k.Bind(l, sa(at.Addr(), 8)))
				r.must(k.Listen(l, 4))
				fd := r.dialFromPort(10 * time.Millisecond)
				s, from, err := k.Accept(l)
				r.must(err)
				client := outcome(nil, from) // valid until the next call
				local, err := k.Local(s)
				r.must(err)
				peer, err := r.ka.Peer(fd)
				r.must(err)
				if client != "10.0.0.1" || outcome(nil, local) != at.Addr().String() || outcome(nil, peer) != "10.0.0.2" {
					t.Errorf("the server sees %s > %v, the client's peer is %v", client, local, peer)
				}
				r.send(r.ka, fd, "hello")
				r.send(k, s, "and back")
				r.pass(10 * time.Millisecond)
				r.recv(k, s, "hello")
				r.recv(r.ka, fd, "and back")
				end(r, fd, s, k)
			})
		}
	}
}
