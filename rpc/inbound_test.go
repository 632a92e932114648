package rpc

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// A handler that its interceptor has left behind has taken a small item, and behind it a large one
// that the answer drops before the handler receives it. Receive returns an error then.
func TestLargeItemDroppedBehindASmallOne(t *testing.T) {
	var left chan error
	var server ServerConfig
	server.Interceptors = []Interceptor{func(ctx context.Context, _ *Info, next func(context.Context) error) error {
		go func() {
			defer func() {
				if p := recover(); p != nil {
					left <- fmt.Errorf("panic: %v", p)
				}
			}()
			left <- next(ctx)
		}()
		time.Sleep(time.Second)
		return ErrDeadline
	}}
	inWorld(t, rigConfig{server: server}, func(s *Server) {
		left = make(chan error, 1)
		HandleBidiStream(s, talk, func(_ context.Context, in *Receiver[Bytes], _ *Sender[Bytes]) error {
			time.Sleep(500 * time.Millisecond)
			if _, err := in.Receive(); err != nil {
				return fmt.Errorf("the first item: %w", err)
			}
			time.Sleep(time.Second)
			for range 2 {
				if _, err := in.Receive(); !errors.Is(err, errHandled) {
					return fmt.Errorf("the second item: %w", err)
				}
			}
			return nil
		})
	}, func(r *rig) {
		d, err := OpenBidiStream(r.t.Context(), r.c, talk)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, n := range []int{10, 100 << 10} {
			b := make(Bytes, n)
			if err := d.Send(&b); err != nil {
				r.t.Fatal(err)
			}
		}
		if _, err := d.Receive(); !errors.Is(err, ErrDeadline) {
			r.t.Errorf("the answer is %v", err)
		}
		if err := <-left; err != nil {
			r.t.Error(err)
		}
		r.quiet()
	})
}
