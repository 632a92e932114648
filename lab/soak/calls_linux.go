package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

// call starts a worker that makes one call after the other.
func (c *customer) call(worker uint64, work string, client *rpc.Client, m rpc.RawMethod, pause time.Duration, most int) {
	var never lately
	c.every(pause, work, patience+grace, func(n uint64) error {
		q := question{Client: c.number, Worker: worker, Seq: n, Never: never, Size: uint32(rand.N(most))}
		reply, err := rpc.CallRaw(c.ctx, client, m, q.pack(rand.N(most)), nil)
		if err != nil {
			never.add(n, err)
			return err
		}
		return q.answered(0, reply)
	})
}

// crowd makes more concurrent calls than the number of idle goroutines that a server keeps (16).
// Otherwise their number would rise now and then, for as long as the soak lasts.
func (c *customer) crowd(client *rpc.Client) {
	const many = 24
	for range many {
		c.workers.Go(func() {
			// a fault may interrupt it
			_, _ = rpc.CallRaw(c.ctx, client, crowd, nil, nil)
		})
	}
}

// receive starts a worker that opens one stream of items after the other.
func (c *customer) receive(worker uint64, work string, client *rpc.Client, pause time.Duration, count, most int) {
	const giveUp = 7 // one of so many streams is not read to its end
	var never lately
	c.every(pause, work, streamPatience+grace, func(n uint64) error {
		ctx, cancel := context.WithTimeout(c.ctx, streamPatience)
		defer cancel()
		q := question{Client: c.number, Worker: worker, Seq: n, Never: never, Count: uint32(rand.N(count)), Size: uint32(rand.N(most))}
		request := rpc.Bytes(q.pack(100))
		r, err := rpc.Open(ctx, client, items, &request)
		if err != nil {
			never.add(n, err)
			return err
		}
		defer r.Close()
		for i := uint64(0); ; i++ {
			item, err := r.Receive()
			switch {
			case errors.Is(err, io.EOF) && i == uint64(q.Count):
				return nil
			case errors.Is(err, io.EOF):
				return wrong("stream %d of worker %d ends after %d items of %d", n, worker, i, q.Count)
			case err != nil:
				if i == 0 {
					never.add(n, err)
				}
				return err
			}
			if err := q.answered(i, *item); err != nil {
				return err
			}
			if n%giveUp == 0 && i > 2 {
				return nil
			}
		}
	})
}

// streamPatience is how long a stream may take.
const streamPatience = 30 * time.Second

// sendAudits sends known fates of messages to the server, which compares them.
func (c *customer) sendAudits(client *rpc.Client) {
	for {
		select {
		case <-c.ctx.Done():
			return
		case f := <-c.audits:
			_, err := rpc.CallRaw(c.ctx, client, audit, f.pack(), nil)
			if c.ctx.Err() == nil {
				c.count("audits", err)
			}
		}
	}
}
