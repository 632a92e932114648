package main

import (
	"context"
	"time"

	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/rpc"
)

func dial(h *host) (end func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &customer{host: h, ctx: ctx, audits: make(chan fates, 64)}
	backoff := reconnect.Backoff{First: 20 * time.Millisecond, Most: time.Second}
	plain := rpc.ClientConfig{MaxMessage: maxMessage, Backoff: backoff, Timeout: patience}
	waits := plain
	waits.WaitForReady, waits.Retry = true, rpc.Retry{Attempts: 3}
	var clients [2]*rpc.Client
	for i, cfg := range []rpc.ClientConfig{plain, waits} {
		if err := eventually(ctx, func() (err error) {
			within, stop := context.WithTimeout(ctx, patience)
			defer stop()
			clients[i], err = rpc.Dial(within, h.rt, h.server.Calls, cfg)
			return err
		}); err != nil {
			cancel()
			return nil, err
		}
	}
	if h.number == 1 { // the peer of later ones is warmed up, or they do not live long
		if err := h.stock(ctx, plain); err != nil {
			cancel()
			return nil, err
		}
	}
	c.crowd(clients[0])
	c.call(1, smallCalls, clients[0], echo, 10*time.Millisecond, 2<<10)
	c.call(2, smallCalls, clients[1], echo, 10*time.Millisecond, 2<<10)
	c.call(3, loopCalls, clients[0], quick, 10*time.Millisecond, 2<<10)
	c.call(4, repeatedCalls, clients[1], again, 20*time.Millisecond, 2<<10)
	c.call(5, largeCalls, clients[0], echo, 200*time.Millisecond, largest)
	c.call(6, largeCalls, clients[1], echo, 200*time.Millisecond, largest)
	c.receive(7, smallItems, clients[0], 200*time.Millisecond, 200, 300)
	c.receive(8, largeItems, clients[1], 500*time.Millisecond, 6, 300<<10)
	askers := []*asker{c.ask(9, clients[0]), c.ask(10, clients[1])}
	talkers := []*talker{c.talk(1, smallMessages, 15*time.Millisecond, 2<<10), c.talk(2, largeMessages, 250*time.Millisecond, 300<<10)}
	c.workers.Go(func() { c.sendAudits(clients[1]) })
	c.transfer(shortStreams)
	c.keepOn(longStream)
	return func() {
		cancel()
		for _, t := range talkers {
			t.close()
		}
		for _, a := range askers {
			a.close()
		}
		c.workers.Wait()
		for _, client := range clients {
			client.Close()
		}
	}, nil
}
