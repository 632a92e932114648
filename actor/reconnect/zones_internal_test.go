package reconnect

import (
	"fmt"
	"net"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// An address that is configured with the number of an interface is that of a peer, which the device
// reports with the interface's name.
func TestZones(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		t.Fatalf("no interfaces: %v", err)
	}
	for _, i := range all {
		peer := rdma.MustAddr("[fe80::1%" + i.Name + "]:40000")
		if home := parseHost(fmt.Sprintf("[fe80::1%%%d]:7471", i.Index)); home != hostAddr(peer) || !home.IsValid() {
			t.Errorf("%v is not %v", home, hostAddr(peer))
		}
	}
	if home := parseHost("svc.example:7471"); home.IsValid() {
		t.Errorf("a name is %v", home)
	}
}
