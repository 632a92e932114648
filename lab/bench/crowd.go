package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
	"github.com/rdmactor/rdmactor/rpc"
)

// Many clients call one server. Each has its own connection and several callers.
const (
	crowdClients = 500
	quickClients = 20
	crowdCallers = 8 // of each client
)

// crowdLimit is above the number of calls in flight, because one address does not get all places.
var crowdLimit = rpc.ServerConfig{MaxCallsInAll: 2 * crowdClients * crowdCallers}

func serveCrowd(e measure.Entry) (measure.Service, error) {
	switch e.Contestant {
	case "rpc":
		return listenRPC(e, echoCall, rpc.HandlerConfig{}, crowdLimit)
	case "rpc-onloop":
		return listenRPC(e, echoCall, rpc.HandlerConfig{OnLoop: true}, crowdLimit)
	}
	return contestants.Serve(e)
}

// dialCrowd makes a client of the clients. Those of rdmactor share a runtime.
func dialCrowd(addr string, e measure.Entry) (_ measure.Client, err error) {
	dial, end := contestants[e.Contestant].Dial, func() error { return nil }
	if e.Ours {
		w, err := contest.OpenWorld(e, rdma.Config{})
		if err != nil {
			return nil, err
		}
		dial = func(addr string, _ measure.Entry) (contest.Tripper, error) { return dialIn(w, addr) }
		end = w.Close
	}
	clients := make([]contest.Caller, crowdClients)
	if e.Quick {
		clients = clients[:quickClients]
	}
	for i := range clients {
		t, err := dial(addr, e)
		if err != nil {
			return nil, err
		}
		clients[i] = t.(contest.Caller)
	}
	return measure.NewClient(func(d time.Duration) (measure.Sample, error) {
		return callTogether(clients, d)
	}, func() error {
		var errs []error
		for _, c := range clients {
			errs = append(errs, c.Close())
		}
		return errors.Join(append(errs, end())...)
	}), nil
}

// callTogether makes each client's callers call until d has passed. It records no times, because so
// many histograms would cost more than the calls.
func callTogether(clients []contest.Caller, d time.Duration) (measure.Sample, error) {
	p := contest.NewPayload(contest.PayloadSize)
	counts, errs := make([]int, len(clients)*crowdCallers), make([]error, len(clients)*crowdCallers)
	var over atomic.Bool
	var all sync.WaitGroup
	begun := time.Now()
	for i := range counts {
		all.Go(func() {
			n, room := 0, make([]byte, len(p))
			for ; !over.Load() && errs[i] == nil; n++ {
				var got []byte
				if got, errs[i] = clients[i/crowdCallers].Call(p, room); errs[i] == nil {
					errs[i] = contest.Echoed(got, p)
				}
			}
			counts[i] = n
		})
	}
	time.Sleep(d)
	over.Store(true)
	all.Wait()
	took, sum := time.Since(begun), 0
	for _, n := range counts {
		sum += n
	}
	return measure.Sample{N: sum, Seconds: took.Seconds(), Bytes: sum * len(p)}, errors.Join(errs...)
}
