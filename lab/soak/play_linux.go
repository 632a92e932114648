package main

import (
	"bufio"
	"context"
	"os"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// play runs a process: it works until its standard input ends, shuts down, and reports whether
// anything is left.
func play(r role) error {
	h, err := openHost(r)
	if err != nil {
		return err
	}
	var end func()
	if r.Side == server {
		s, failed := serve(h)
		end, err = s.close, failed
	} else {
		end, err = dial(h)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
		cancel()
	}()
	if err := h.report(ctx, h.rt, r.Scale.Every); err != nil {
		return err
	}
	end()
	h.close()
	if err := leftOver(); err != nil {
		h.fault("after the end: %v", err)
	}
	s := h.tick()
	s.Last = true
	return measure.Report(s)
}

// leftOver returns an error that names the goroutines that do not end. Proto.Actor's dead-letter
// counter takes a second longer than its system.
func leftOver() (err error) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if err = goleak.Find(); err == nil {
			return nil
		}
	}
	return err
}
