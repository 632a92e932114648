package main

import (
	"net"
	"net/rpc"

	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// EchoService is the service that net/rpc serves.
type EchoService struct{}

// Echo answers with its argument.
func (EchoService) Echo(p []byte, reply *[]byte) error {
	*reply = p
	return nil
}

func serveNetRPC(measure.Entry) (measure.Service, error) {
	s := rpc.NewServer()
	if err := s.RegisterName("Bench", EchoService{}); err != nil {
		return nil, err
	}
	return contest.ListenTCP(func(c net.Conn) { s.ServeConn(c) })
}

func dialNetRPC(addr string, _ measure.Entry) (contest.Tripper, error) {
	c, err := rpc.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return contest.Calls{
		CallFunc: func(p, _ []byte) (got []byte, err error) {
			err = c.Call("Bench.Echo", p, &got)
			return got, err
		},
		CloseFunc: c.Close,
	}, nil
}
