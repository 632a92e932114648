package contest

import (
	"fmt"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// Contestant is one way to send bytes to a server and back.
type Contestant struct {
	Serve func(measure.Entry) (measure.Service, error)
	Dial  func(addr string, e measure.Entry) (Tripper, error)
}

// Contestants by name.
type Contestants map[string]Contestant

// Ours are the contestants of this project, and plain sockets.
var Ours = Contestants{
	"verbs":      {serveVerbs, nil},
	"actor":      {serveActor, dialActor},
	"rdmanet":    {serveRDMANet, dialRDMANet},
	"net.Conn":   {serveEcho, dialEcho},
	"read/write": {serveEcho, dialEcho},
	cryptoTLS:    {serveEcho, dialEcho},
	"spinning":   {serveEcho, dialEcho},
}

// Serve starts the echo server of the entry's contestant.
func (c Contestants) Serve(e measure.Entry) (measure.Service, error) { return c[e.Contestant].Serve(e) }

// Dial makes a client with one caller, which makes one call after the other.
func (c Contestants) Dial(addr string, e measure.Entry) (measure.Client, error) {
	if e.Contestant == "verbs" {
		return dialVerbs(addr, e, latency)
	}
	t, err := c[e.Contestant].Dial(addr, e)
	if err != nil {
		return nil, err
	}
	return oneCaller(t), nil
}

// DialMany makes a client with ManyCallers callers on one connection.
func (c Contestants) DialMany(addr string, e measure.Entry) (measure.Client, error) {
	t, err := c[e.Contestant].Dial(addr, e)
	if err != nil {
		return nil, err
	}
	caller, ok := t.(Caller)
	if !ok {
		return nil, fmt.Errorf("%s takes one call at a time", e.Contestant)
	}
	return manyCallers(caller), nil
}
