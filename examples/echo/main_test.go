package main

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/iwarp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A client gets back what it has sent, and a client without a server the reason.
func TestEcho(t *testing.T) {
	const addr = "127.3.200.1:7471" // another loopback address than the program's
	open := func() *rdma.Runtime {
		rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	client, server := open(), open()
	if _, err := sendText(client, addr, "hello"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Fatalf("without a server: %v", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serveEcho(ctx, server, addr) }()
	answer, err := sendText(client, addr, "hello")
	for errors.Is(err, unix.ECONNREFUSED) { // the server does not listen yet
		answer, err = sendText(client, addr, "hello")
	}
	if answer != "hello" || err != nil {
		t.Errorf("%q, %v", answer, err)
	}
	stop()
	if err := errors.Join(<-served, client.Shutdown(context.Background()), server.Shutdown(context.Background())); err != nil {
		t.Error(err)
	}
}

// The same on two simulated machines, in virtual time: the server listens when Wait returns.
func TestEchoOnTwoMachines(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		const addr = "10.0.0.2:7471"
		server := w.Host("server", "10.0.0.2")
		go func() {
			if err := serveEcho(w.T().Context(), server, addr); err != nil {
				w.T().Error(err)
			}
		}()
		w.Wait()
		if answer, err := sendText(w.Runtime(), addr, "hello"); answer != "hello" || err != nil {
			t.Errorf("%q, %v", answer, err)
		}
	})
}
