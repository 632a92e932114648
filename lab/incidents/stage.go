package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/iwarp"
)

// stage is a server, which the page shows, and its clients. They have separate runtimes, like
// programs on other machines, and communicate over loopback.
type stage struct {
	ctx     context.Context
	system  *actor.ActorSystem
	device  cmid.Driver // the server's
	server  *rdma.Runtime
	clients *rdma.Runtime
	far     *rdma.Runtime // clients that may stand still
	level   *slog.LevelVar
	at      string // the server's address
	trouble atomic.Bool
	parties *parties

	mu    sync.Mutex
	crowd map[string]*actor.PID // the server's actors for the crowd's connections
}

const endFor = 30 * time.Second

// newStage opens the runtimes, starts the server's listener, and connects its clients.
func newStage(ctx context.Context, what incident, log io.Writer) (_ *stage, err error) {
	s := &stage{
		ctx: ctx, device: iwarp.New(), level: new(slog.LevelVar), parties: newParties(what.parties),
		crowd: make(map[string]*actor.PID),
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: s.level}))
	// the server's operator does not see the clients' log
	quiet := slog.New(slog.DiscardHandler)
	s.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	cfg := what.config
	cfg.Device, cfg.Logger = s.device, logger
	if s.server, err = rdma.Open(s.system, cfg); err != nil {
		return nil, err
	}
	if s.clients, err = rdma.Open(s.system, rdma.Config{Device: iwarp.New(), Logger: quiet}); err != nil {
		return nil, err
	}
	if s.far, err = rdma.Open(s.system, rdma.Config{Device: iwarp.New(), Logger: quiet}); err != nil {
		return nil, err
	}
	id := what.id
	id.Handler = actor.PropsFromProducer(func() actor.Actor { return &host{s: s, serve: what.serve, crowd: what.crowd > 0} })
	listener := s.server.CreateID(nil, id)
	on, err := rdma.Ask[*rdma.Listening](ctx, s.server, listener, &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	s.at = on.Local.String()
	what.clients(s)
	return s, nil
}

// close ends the clients first, so that the server sees an orderly end.
func (s *stage) close() (err error) {
	s.trouble.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), endFor)
	defer cancel()
	for _, rt := range []*rdma.Runtime{s.far, s.clients, s.server} {
		if rt != nil {
			err = errors.Join(err, rt.Shutdown(ctx))
		}
	}
	s.system.Shutdown()
	return err
}

// awaitConnected waits until all clients are connected.
func (s *stage) awaitConnected(what incident) error {
	late := time.After(2 * time.Minute)
	for s.parties.countMissing() > 0 || s.countCrowd() < what.crowd {
		select {
		case <-s.ctx.Done():
			return nil
		case <-late:
			return fmt.Errorf("%d clients and %d of the crowd do not get a connection", s.parties.countMissing(), what.crowd-s.countCrowd())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// countCrowd returns how many of the crowd are connected.
func (s *stage) countCrowd() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.crowd)
}

// hangUp ends the connections of the crowd.
func (s *stage) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pid := range s.crowd {
		s.system.Root.Send(pid, &hangUp{})
	}
}

// waitForOthers does not return while there is trouble, like a call to a database.
func (s *stage) waitForOthers() {
	for s.trouble.Load() && s.ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// dials are those of the crowd's runtime.
type dials struct {
	Crowd   int // connected
	Dialing int
	InLine  int // waiting for their turn to dial
}

func (s *stage) pageSections() []inspect.Section {
	return []inspect.Section{
		inspect.Rows("clients", "Clients", s.parties.pageRows),
		inspect.Rows("dials", "Dials", func() []dials {
			dialing, waiting := reconnect.LimiterOf(s.clients).Inspect()
			return []dials{{s.countCrowd(), dialing, len(waiting)}}
		}),
	}
}
