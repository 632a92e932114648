package inspect

import (
	"context"
	"net/http"
	"time"
)

// Whoever reaches the page may ask as often as he likes. So answers are made one after the other,
// on one core at most, and only so many are in memory while connections take them.
const (
	mostAnswers = 16
	// answerFor is how long an answer may take on its way. writeFor is for a part of it.
	answerFor = 30 * time.Second
	part      = 64 << 10
)

// bounds are what all requests of a page share.
type bounds struct {
	answers chan struct{} // has an element for each answer that is made, or on its way
	making  chan struct{} // has one while an answer is made
}

func newBounds() bounds {
	return bounds{make(chan struct{}, mostAnswers), make(chan struct{}, 1)}
}

// enter takes a place in one of them, unless there is none for too long.
func enter(ctx context.Context, places chan struct{}) error {
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

// produce makes an answer when it is its turn.
func (b *bounds) produce(ctx context.Context, value func() (any, error), format func(any) ([]byte, error)) ([]byte, error) {
	if err := enter(ctx, b.making); err != nil {
		return nil, err
	}
	defer func() { <-b.making }()
	made, err := value()
	if err != nil {
		return nil, err
	}
	return format(made)
}

// pour writes in parts, so that who reads slowly is not taken for one who does not read. Where the
// server knows no deadlines, its own count.
func pour(w http.ResponseWriter, data []byte) error {
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
