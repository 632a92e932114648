package remoting_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
)

// A node needs a name that peers can dial: not port 0, which two nodes would both be called after,
// nor the address that stands for all.
func TestNamesThatNobodyCanDial(t *testing.T) {
	for what, cfg := range map[string]remoting.Config{
		"port 0": {Name: "127.0.0.1:0"}, "port 0 of a host": {Name: "localhost:0", Listen: "127.0.0.1:0"},
		"all addresses": {Listen: "0.0.0.0:0"}, "all of IPv6": {Listen: "[::]:0"}, "no host": {Listen: ":0"}, "a name of that": {Name: "0.0.0.0:7471", Listen: "127.0.0.1:0"},
	} {
		sys := newSystem()
		rt, err := rdma.Open(sys, rdma.Config{Device: here.device(), Logger: logger()})
		if err != nil {
			t.Fatal(err)
		}
		n, err := remoting.Start(sys, rt, cfg)
		if !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v", what, err)
		}
		alone := &node{t: t, Node: n, sys: sys, rt: rt}
		if n != nil {
			alone.end()
		} else {
			alone.close()
		}
	}
	n := start(t, remoting.Config{Listen: "0.0.0.0:0", Name: "far:1"})
	if n.Name() != "far:1" {
		t.Error(n.Name())
	}
}
