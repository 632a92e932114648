package perf

import (
	"context"
	"errors"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Config is the configuration of a Client or a Server.
type Config struct {
	Driver cmid.Driver
	Wait   eventloop.WaitMode // how this side waits; the other side has its own mode
	// Timeout is the time limit for progress. A connection without any progress ends after one to
	// two Timeouts.
	Timeout time.Duration
	// Transport has the parameters with which this side's connections send.
	Transport cmid.Transport
	// Complain is called on the loop for each connection of a server that has failed. A client does
	// not call it.
	Complain func(error)
}

// host is an event channel on its loop.
type host struct {
	cfg  Config
	loop *eventloop.Loop
	ch   *cmid.Channel
}

func openHost(cfg Config, sink cmid.Sink) (*host, error) {
	loop, err := eventloop.New(eventloop.Config{Name: "perf", Wait: cfg.Wait})
	if err != nil {
		return nil, err
	}
	ch, err := cmid.NewChannel(loop, cfg.Driver, sink)
	if err != nil {
		return nil, errors.Join(err, loop.Shutdown(context.Background()))
	}
	loop.Start()
	return &host{cfg, loop, ch}, nil
}

// runOnLoop runs f on the loop, waits for it, and returns its error.
func (h *host) runOnLoop(f func() error) error {
	done := make(chan error, 1)
	if err := h.loop.Post(func() { done <- f() }); err != nil {
		return err
	}
	return <-done
}

func (h *host) close() error {
	return errors.Join(h.runOnLoop(h.ch.Close), h.loop.Shutdown(context.Background()))
}
