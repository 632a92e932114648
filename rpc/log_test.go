package rpc

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// slowLog counts the lines that it was given. Writing the first one takes until open is closed.
type slowLog struct {
	open  chan struct{}
	lines atomic.Int32
}

func (*slowLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *slowLog) Handle(context.Context, slog.Record) error {
	<-l.open
	l.lines.Add(1)
	return nil
}
func (l *slowLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *slowLog) WithGroup(string) slog.Handler      { return l }

// A handler panics as often as a client calls it, and the logger is slow. No call waits for that,
// even if the handler is OnLoop, and the log does not grow without limit.
func TestPanicsDoNotFillTheLog(t *testing.T) {
	for name, cfg := range map[string]HandlerConfig{"on goroutines": {}, "OnLoop": {OnLoop: true}} {
		t.Run(name, func(t *testing.T) {
			log := &slowLog{}
			inWorld(t, rigConfig{world: actortest.Config{Runtime: rdma.Config{Logger: slog.New(log)}}}, func(s *Server) {
				handleEcho(s)
				HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) { panic("for the test") }, cfg)
			}, func(r *rig) {
				log.open = make(chan struct{}) // of the bubble
				const calls, lines = 200, 10   // allowed by Runtime.Logger
				for range calls {
					r.ExpectPanic("for the test")
					_, err := CallRaw(r.within(time.Minute), r.c, fail, nil, nil)
					want(t, err, ErrInternal, FateAnswered)
				}
				r.good()
				close(log.open)
				synctest.Wait()
				if n := log.lines.Load(); n != lines {
					t.Errorf("%d lines of %d panics, want %d", n, calls, lines)
				}
			})
		})
	}
}
