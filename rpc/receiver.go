package rpc

import (
	"errors"
	"io"
	"iter"
)

// Receiver receives the items of a stream: at a client those of the server, in a handler those of
// the client. One goroutine at a time may use it, but any may call Close. In a handler it may be
// used until the handler returns.
type Receiver[T any] struct {
	r        *inbound
	received func(item any) error // Info.OnReceive; nil: none
	opts     callOptions
}

// Receive waits for the next item. At the end of the stream it returns io.EOF: at a client when the
// handler has returned without an error, in a handler when the client has called CloseSend. Every
// other error of a client's stream is an *Error and ends the stream, too, with two exceptions: the
// error of an interceptor (Info.OnReceive), and that of a loop's goroutine, which must not wait: it
// has eventloop.ErrOnLoop in it, and the stream goes on. A handler gets the cause of its context's
// end if the call has ended.
func (r *Receiver[T]) Receive() (*T, error) {
	item := new(T)
	if err := r.ReceiveInto(item); err != nil {
		return nil, err
	}
	return item, nil
}

// ReceiveInto is Receive into memory of the caller, which may use it again for the next item.
// Bytes are overwritten if they have room. With an error the contents of item are undefined.
func (r *Receiver[T]) ReceiveInto(item *T) error {
	err := r.r.receiveItem(item)
	r.fillTargets(err)
	if err == nil && r.received != nil {
		if err = r.received(item); err != nil {
			r.r.failStream(err)
		}
	}
	return err
}

// All returns an iterator over the items that are still to come. If the stream ends with another
// error than io.EOF, that comes last. The stream is closed when the loop is left.
func (r *Receiver[T]) All() iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		defer r.Close()
		for {
			item, err := r.Receive()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// Close abandons the stream. The context of the server's handler is cancelled. Items that were not
// received are dropped, and Receive returns context.Canceled; it may return some of them before. A
// stream whose end Receive has returned need not be closed.
// In a handler Close does nothing: the stream ends when the handler returns. Any goroutine.
func (r *Receiver[T]) Close() { r.r.from.closeStream(nil) }

// Header returns the metadata that the handler has sent before its items (SetHeader). It is
// complete once Receive has returned. In a handler there is none.
func (r *Receiver[T]) Header() Pairs { return r.r.from.headerMeta() }

// Trailer returns the metadata that the handler has sent with the end of the stream (SetTrailer).
// There is none before Receive has returned the end, and in a handler.
func (r *Receiver[T]) Trailer() Pairs { return r.r.from.trailerMeta() }
