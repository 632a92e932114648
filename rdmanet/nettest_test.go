package rdmanet

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

// The tests of golang.org/x/net that every net.Conn has to pass.
func TestConn(t *testing.T) {
	rt := openRuntime(t)
	l := listen(t, rt)
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c1, err = Dial(t.Context(), rt, l.Addr().String(), Config{})
		if err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.Accept()
		return c1, c2, func() {
			_ = c1.Close()
			_ = c2.Close()
		}, err
	})
}
