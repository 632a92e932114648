package main

import (
	"context"
	"errors"
	"net"
	netrpc "net/rpc"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/rpc"
)

var echoMethod = rpc.NewRawMethod("bench.Echo")

// serveRPC answers on the loop for rpc-onloop, and otherwise on goroutines, as all the others do.
func serveRPC(e measure.Entry) (measure.Service, error) {
	return listenRPC(e, echoCall, rpc.ServerConfig{})
}

func echoCall(_ context.Context, q, reply []byte) ([]byte, error) { return append(reply, q...), nil }

type rawHandler = func(ctx context.Context, q, reply []byte) ([]byte, error)

func listenRPC(e measure.Entry, h rawHandler, cfg rpc.ServerConfig) (measure.Service, error) {
	return startServer(e, func(s *rpc.Server) {
		rpc.HandleRaw(s, echoMethod, h, rpc.HandlerConfig{OnLoop: e.Contestant == "rpc-onloop"})
	}, cfg)
}

// startServer starts a server with the handlers that register sets.
func startServer(e measure.Entry, register func(*rpc.Server), cfg rpc.ServerConfig) (measure.Service, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return measure.Service{}, err
	}
	s := rpc.NewServer(w.RT, cfg)
	register(s)
	addr, err := s.Listen(context.Background(), contest.Loopback)
	return measure.Service{Addr: addr.String(), Close: func() error {
		s.Close()
		return w.Close()
	}}, err
}

// connectClient connects to a server, and gives up after a while.
func connectClient(w contest.World, addr string) (*rpc.Client, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return rpc.Dial(ctx, w.RT, addr)
}

func dialRPC(addr string, e measure.Entry) (contest.Calls, error) {
	w, err := contest.OpenWorld(e, rdma.Config{})
	if err != nil {
		return contest.Calls{}, err
	}
	calls, err := dialIn(w, addr)
	end := calls.Close
	calls.Close = func() error { return errors.Join(end(), w.Close()) }
	return calls, err
}

// dialIn makes a client in a runtime that it does not close.
func dialIn(w contest.World, addr string) (contest.Calls, error) {
	c, err := connectClient(w, addr)
	return contest.Calls{
		Call: func(p, room []byte) ([]byte, error) {
			return rpc.CallRaw(context.Background(), c, echoMethod, p, room[:0])
		},
		Close: func() error {
			c.Close()
			return nil
		},
	}, err
}

// Many clients call one server. Each has its own connection and several callers.
const (
	crowdClients = 500
	quickClients = 20
	crowdCallers = 8 // of each client
)

func serveCrowd(e measure.Entry) (measure.Service, error) {
	if !e.Ours {
		return contestants.Serve(e)
	}
	// The limit is above the number of calls in flight, because one address does not get all
	// places.
	return listenRPC(e, echoCall, rpc.ServerConfig{MaxCallsInAll: 2 * crowdClients * crowdCallers})
}

// dialCrowd makes a client of the clients. Those of rdmactor share a runtime. It records no times,
// because so many histograms would cost more than the calls.
func dialCrowd(addr string, e measure.Entry) (measure.Client, error) {
	dial, end := contestants[e.Contestant].Dial, func() error { return nil }
	if e.Ours {
		w, err := contest.OpenWorld(e, rdma.Config{})
		if err != nil {
			return measure.Client{}, err
		}
		dial = func(addr string, _ measure.Entry) (contest.Calls, error) { return dialIn(w, addr) }
		end = w.Close
	}
	clients := make([]contest.Calls, crowdClients)
	if e.Quick {
		clients = clients[:quickClients]
	}
	for i := range clients {
		var err error
		if clients[i], err = dial(addr, e); err != nil {
			return measure.Client{}, err
		}
	}
	return measure.Client{Run: func(d time.Duration) (measure.Sample, error) {
		return contest.Together(len(clients)*crowdCallers, contest.PayloadSize, d, false, func(i int, p, room []byte) ([]byte, error) {
			return clients[i/crowdCallers].Call(p, room)
		})
	}, Close: func() error {
		var errs []error
		for _, c := range clients {
			errs = append(errs, c.Close())
		}
		return errors.Join(append(errs, end())...)
	}}, nil
}

// EchoService is the service that net/rpc serves.
type EchoService struct{}

// Echo answers with its argument.
func (EchoService) Echo(p []byte, reply *[]byte) error {
	*reply = p
	return nil
}

func serveNetRPC(measure.Entry) (measure.Service, error) {
	s := netrpc.NewServer()
	if err := s.RegisterName("Bench", EchoService{}); err != nil {
		return measure.Service{}, err
	}
	return contest.ListenTCP(func(c net.Conn) { s.ServeConn(c) })
}

func dialNetRPC(addr string, _ measure.Entry) (contest.Calls, error) {
	c, err := netrpc.Dial("tcp", addr)
	if err != nil {
		return contest.Calls{}, err
	}
	return contest.Calls{
		Call: func(p, _ []byte) (got []byte, err error) {
			err = c.Call("Bench.Echo", p, &got)
			return got, err
		},
		Close: c.Close,
	}, nil
}
