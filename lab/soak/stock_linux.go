package main

import (
	"context"
	"sync"

	"github.com/rdmactor/rdmactor/rpc"
)

// largest is about the most bytes that a request, an answer or a message has.
const largest = 400 << 10

// stock has both sides get what memory they may keep to receive large messages into: 8 MiB for each
// of two loops. Messages of random sizes would take hours for that, and it would look like a leak.
// So clients of its own, several for each loop, make many large calls at a time, of every size that
// memory is kept in.
func (h *host) stock(ctx context.Context, cfg rpc.Config) error {
	const clients, atATime, smallest = 4, 8, 64 << 10
	ctx, cancel := context.WithTimeout(ctx, 6*patience)
	defer cancel()
	var callers sync.WaitGroup
	for range clients {
		client, err := rpc.Dial(ctx, h.rt, h.server.Calls, cfg)
		if err != nil {
			return err
		}
		defer client.Close() // behind Wait
		for range atATime {
			callers.Go(func() {
				b := make([]byte, largest)
				for n := largest; n > smallest; n -= n / 8 {
					// where the machine is busy one may fail, and others do
					_, _ = rpc.CallRaw(ctx, client, bulk, b[:n], nil)
				}
			})
		}
	}
	callers.Wait()
	return nil
}
