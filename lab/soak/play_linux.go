package main

import (
	"bufio"
	"context"
	"os"
	"time"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/lab/measure"
)

// runProcess runs a process: it works until its standard input ends, shuts down, and reports
// whether anything is left.
func runProcess(r role) error {
	h, err := openHost(r)
	if err != nil {
		return err
	}
	var end func()
	if r.Side == server {
		s, failed := startServant(h)
		end, err = s.close, failed
	} else {
		end, err = startCustomer(h)
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
	if err := h.sendReports(ctx, h.rt, r.Scale.Every); err != nil {
		return err
	}
	end()
	h.close()
	if err := leftOver(); err != nil {
		h.recordFault("after the end: %v", err)
	}
	s := h.takeSample()
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
