package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// process is a running server or client, as seen by its parent.
type process struct {
	role  role
	child *measure.Child
	read  chan struct{} // closed after its last report

	mu   sync.Mutex
	last sample // zero: no report yet
}

// startProcess starts a process at its end of the link. Each sample goes to sink.
func startProcess(ctx context.Context, at *namespace, r role, sink func(*process, sample)) (*process, error) {
	p := &process{role: r, read: make(chan struct{})}
	if err := at.runInside(func() (err error) { // at's thread lives as long as at: Pdeathsig
		p.child, err = measure.Start(ctx, r.String(), -1, 2, r)
		return err
	}); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.read)
		for {
			var s sample
			if p.child.Ask("", &s) != nil {
				return
			}
			p.mu.Lock()
			p.last = s
			p.mu.Unlock()
			sink(p, s)
		}
	}()
	return p, nil
}

func (p *process) lastSample() sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// killAndWait sends SIGKILL, and waits.
func (p *process) killAndWait() {
	_ = p.child.Signal(unix.SIGKILL)
	<-p.read
	_ = p.child.Stop() // "signal: killed"
}

// suspendFor stops the process for the given time, or until ctx ends.
func (p *process) suspendFor(ctx context.Context, d time.Duration) error {
	if err := p.child.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	sleepFor(ctx, d)
	return p.child.Signal(unix.SIGCONT)
}

// shutDown asks the process to shut down, and waits.
func (p *process) shutDown() error {
	err := p.child.Stop()
	<-p.read
	if err != nil {
		return fmt.Errorf("%v: %w", p.role, err)
	}
	if !p.lastSample().Last {
		return fmt.Errorf("%v has ended without its last report", p.role)
	}
	return nil
}

func sleepFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
