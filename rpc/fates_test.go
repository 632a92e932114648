package rpc

import (
	"context"
	"fmt"
	"testing"
)

// An interceptor that goes on several times returns the error of one of them. The fate of the call
// is that of all: it is not "not sent" if another one may have been executed.
func TestFateWithinInterceptors(t *testing.T) {
	type next = func(context.Context) error
	for name, c := range map[string]struct {
		around func(ctx, over context.Context, b *blocking, next next) error
		want   Fate
	}{
		"after an answer": {func(ctx, over context.Context, b *blocking, next next) error {
			b.release <- struct{}{}
			_ = next(ctx)
			return next(over)
		}, FateUnknown},
		"wrapped": {func(ctx, over context.Context, b *blocking, next next) error {
			b.release <- struct{}{}
			_ = next(ctx)
			return fmt.Errorf("again: %w", next(over))
		}, FateUnknown},
		"beside another": {func(ctx, over context.Context, b *blocking, next next) error {
			go func() { _ = next(ctx) }()
			<-b.began
			return next(over)
		}, FateUnknown},
		"nothing was sent": {func(_, over context.Context, _ *blocking, next next) error {
			_ = next(over)
			return next(over)
		}, FateNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			var b *blocking
			around := func(ctx context.Context, _ *Info, next next) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				over, end := context.WithCancel(ctx)
				end()
				return c.around(ctx, over, b, next)
			}
			inWorld(t, rigConfig{client: ClientConfig{Interceptors: []Interceptor{around}}}, func(s *Server) {
				b = handleBlock(s)
				b.release = make(chan struct{}, 1)
			}, func(r *rig) {
				_, err := CallRaw(r.t.Context(), r.c, block, []byte("?"), nil)
				want(r.t, err, context.Canceled, c.want)
			})
		})
	}
}
