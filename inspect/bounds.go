package inspect

import (
	"context"
	"net/http"
	"time"
)

// Any client that reaches the page may send any number of requests. So answers are made one after
// the other, on one core at most, and few are in memory while connections take them.
const (
	mostAnswers = 16
	// answerFor is the time limit for sending an answer, writeFor that for sending a part of it.
	answerFor = 30 * time.Second
	part      = 64 << 10
)

// bounds are shared by all requests of a page.
type bounds struct {
	answers chan struct{} // one element for each answer being made or sent
	making  chan struct{} // one element while an answer is made
}

func newBounds() bounds {
	return bounds{make(chan struct{}, mostAnswers), make(chan struct{}, 1)}
}

// takePlace takes a place in one of the channels, or fails if none is free for too long.
func takePlace(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	slow := time.NewTimer(patience)
	defer slow.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-slow.C:
		return &failure{http.StatusServiceUnavailable, "too many requests"}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// makeAnswer makes an answer when it is its turn.
func (b *bounds) makeAnswer(ctx context.Context, value func() (any, error), format func(any) ([]byte, error)) ([]byte, error) {
	if err := takePlace(ctx, b.making); err != nil {
		return nil, err
	}
	defer func() { <-b.making }()
	made, err := value()
	if err != nil {
		return nil, err
	}
	return format(made)
}

// writeInParts writes in parts, so that a slow reader is not taken for a stopped one. If the server
// does not support deadlines, its own limits apply.
func writeInParts(w http.ResponseWriter, data []byte) error {
	control, end := http.NewResponseController(w), time.Now().Add(answerFor)
	for len(data) > 0 {
		until := time.Now().Add(writeFor)
		if until.After(end) {
			until = end
		}
		_ = control.SetWriteDeadline(until)
		n, err := w.Write(data[:min(part, len(data))])
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
