package main

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/stats"
	"github.com/rdmactor/rdmactor/lab/contest"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// An actor is sent more than it can handle.
const (
	sinkMessages = 300_000
	quickSink    = 1000
	sinkSize     = 1 << 10
	sinkPause    = time.Millisecond // per message
	sinkSending  = 5 * time.Second  // at most
	sinkSettling = 2 * time.Second  // afterwards, until the memory is measured
	sinkName     = "sink"
)

// The metrics of the scenario.
const (
	sinkServerMiB = "server peak MiB"
	sinkClientMiB = "client peak MiB"
	sinkSent      = "sent"
	sinkRefused   = "refused" // the sender is notified
	sinkDelivered = "delivered"
)

func peakMiB() float64 { return float64(stats.ProcessMemory("VmHWM")) / (1 << 20) }

// sink is the actor's node.
type sink struct {
	measure.Service
	delivered atomic.Int64
	over      atomic.Bool
}

func serveSink(e measure.Entry) (measure.Service, error) {
	s := &sink{}
	var err error
	s.Service, err = openNode(e, sinkName, func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); !ok {
			return
		}
		s.delivered.Add(1)
		if !s.over.Load() {
			time.Sleep(sinkPause)
		}
	})
	return s, err
}

// Report implements measure.Reporter.
func (s *sink) Report() measure.Metrics {
	return measure.Metrics{sinkServerMiB: peakMiB(), sinkDelivered: float64(s.delivered.Load())}
}

// Close makes the actor handle the remaining messages immediately.
func (s *sink) Close() error {
	s.over.Store(true)
	return s.Service.Close()
}

func dialSink(addr string, e measure.Entry) (measure.Client, error) {
	n, err := openNode(e, "", nil)
	if err != nil {
		return nil, err
	}
	var refused atomic.Int64
	n.System().EventStream.Subscribe(func(m any) {
		if _, ok := m.(*actor.DeadLetterEvent); ok {
			refused.Add(1)
		}
	})
	messages, settling := sinkMessages, sinkSettling
	if e.Quick {
		messages, settling = quickSink, 0
	}
	to := actor.NewPID(addr, sinkName)
	return measure.NewClient(func(time.Duration) (measure.Sample, error) {
		begun := time.Now()
		sent := 0
		for ; sent < messages && time.Since(begun) < sinkSending; sent++ {
			// Each message has separate memory, as in a real program.
			n.System().Root.Send(to, wrapperspb.Bytes(contest.NewPayload(sinkSize)))
		}
		took := time.Since(begun)
		time.Sleep(settling)
		return measure.Sample{
			N: sent, Seconds: took.Seconds(), Bytes: sent * sinkSize,
			More: measure.Metrics{sinkSent: float64(sent), sinkRefused: float64(refused.Load()), sinkClientMiB: peakMiB()},
		}, nil
	}, func() error {
		_ = n.Close() // it reports that not everything was sent
		return nil
	}), nil
}
