package main

import (
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/states"
)

// twin is two hosts on a network in memory, 10.0.0.1 and 10.0.0.2.
type twin struct {
	f            *cmidtest.Fabric
	server, peer func(string) (cmid.Driver, error)
}

func newTwin(flavor states.Flavor) twin {
	f := cmidtest.NewFabric(cmidtest.Config{Flavor: flavor})
	f.Host("server").AddDevice("mem0", "10.0.0.1")
	f.Host("client").AddDevice("mem0", "10.0.0.2")
	return twin{
		f:      f,
		server: func(string) (cmid.Driver, error) { return f.Host("server").Driver(), nil },
		peer:   func(string) (cmid.Driver, error) { return f.Host("client").Driver(), nil },
	}
}

// left checks that the programs have freed everything.
func (w twin) left(t *testing.T) {
	t.Helper()
	if left := w.f.Left(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestTwin tests both flavors of a kernel's device, and datagrams, which the embedded device does
// not support.
func TestTwin(t *testing.T) {
	for name, c := range map[string]struct {
		flavor         states.Flavor
		server, client string
	}{
		"rdma, InfiniBand":     {0, "rdma_server -s 10.0.0.1", "rdma_client -s 10.0.0.1"},
		"rdma, iWARP":          {states.IWARP, "rdma_server -s 10.0.0.1", "rdma_client -s 10.0.0.1"},
		"ucmatose, InfiniBand": {0, "ucmatose -b 10.0.0.1 -c 10 -S 4000", "ucmatose -s 10.0.0.1 -c 10 -S 4000"},
		"ucmatose, iWARP":      {states.IWARP, "ucmatose -b 10.0.0.1 -c 10 -S 4000", "ucmatose -s 10.0.0.1 -c 10 -S 4000"},
		"writeimm":             {0, "writeimm -b 10.0.0.1 -S 20000", "writeimm -s 10.0.0.1 -S 20000"},
		"udaddy":               {0, "udaddy -b 10.0.0.1 -c 3 -S 1024", "udaddy -s 10.0.0.1 -c 3 -S 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(c.flavor)
			server := startOn(w.server, strings.Fields(c.server)...)
			server.port(t)
			client := startOn(w.peer, strings.Fields(c.client)...)
			client.end(t, 0, "")
			server.end(t, 0, "")
			w.left(t)
		})
	}
}

// TestDatagramsOfAnotherSize: a datagram that is too long is dropped, and one that is too short is
// detected.
func TestDatagramsOfAnotherSize(t *testing.T) {
	w := newTwin(0)
	server := startOn(w.server, "udaddy", "-b", "10.0.0.1", "-S", "101")
	server.port(t)
	client := startOn(w.peer, "udaddy", "-s", "10.0.0.1", "-timeout", "300ms")
	server.end(t, failed, "message 0 has 100 bytes, want 101")
	client.end(t, failed, "receiving: not within 300ms")
	w.left(t)
}

// TestWritesOfAnotherSize: a peer with memory of another size is not written to.
func TestWritesOfAnotherSize(t *testing.T) {
	w := newTwin(0)
	server := startOn(w.server, "writeimm", "-b", "10.0.0.1", "-S", "101")
	server.port(t)
	client := startOn(w.peer, "writeimm", "-s", "10.0.0.1")
	client.end(t, failed, "the other side has memory for 101 bytes, not 100")
	server.end(t, failed, "the peer has gone")
	w.left(t)
}
