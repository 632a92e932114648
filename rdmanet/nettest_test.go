package rdmanet

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// The tests of golang.org/x/net that every net.Conn has to pass.
func TestConn(t *testing.T) {
	for name, cfg := range map[string]rdma.Config{"insecure": {}, "PSK": {Security: sharedKey(t)}} {
		t.Run(name, func(t *testing.T) {
			rt := openRuntime(t, cfg)
			l := listen(t, rt)
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				c1, err = Dial(t.Context(), rt, l.Addr().String())
				if err != nil {
					return nil, nil, nil, err
				}
				c2, err = l.Accept()
				return c1, c2, func() {
					_ = c1.Close()
					_ = c2.Close()
				}, err
			})
		})
	}
}
