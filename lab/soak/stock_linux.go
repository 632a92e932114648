package main

import (
	"context"
	"sync"

	"github.com/rdmactor/rdmactor/rpc"
)

// largest is about the maximum length of a request, an answer or a message.
const largest = 400 << 10

// stock makes both sides allocate the memory that they may retain for receiving large messages: 8
// MiB for each of two loops. With messages of random sizes this would take hours, and look like a
// leak. So additional clients, several for each loop, make many concurrent large calls, of every
// size for which memory is retained.
func (h *host) stock(ctx context.Context, cfg rpc.ClientConfig) error {
	const clients, atATime, smallest = 4, 8, 64 << 10
	ctx, cancel := context.WithTimeout(ctx, 6*patience)
	defer cancel()
	var callers sync.WaitGroup
	for range clients {
		client, err := rpc.Dial(ctx, h.rt, h.server.Calls, cfg)
		if err != nil {
			return err
		}
		defer client.Close() // after Wait
		for range atATime {
			callers.Go(func() {
				b := make([]byte, largest)
				for n := largest; n > smallest; n -= n / 8 {
					// on a busy machine some may fail, but not all
					_, _ = rpc.CallRaw(ctx, client, bulk, b[:n], nil)
				}
			})
		}
	}
	callers.Wait()
	return nil
}
