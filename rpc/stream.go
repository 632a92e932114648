package rpc

import (
	"context"
	"io"
	"iter"
)

// Open opens a stream whose items the server sends. It returns before the server has answered: if
// the server refuses the stream, Receive returns the error. The stream ends when ctx ends. It is
// not repeated (Retry). ClientConfig.Timeout limits how long Open waits for a connection
// (WaitForReady), and not how long the stream lasts. A stream that is not read to its end must be
// closed, or its ctx must end: until then it counts as open. All this applies to OpenClientStream
// and OpenBidiStream, too.
func Open[Q, T any](ctx context.Context, c *Client, m Stream[Q, T], q *Q, opts ...CallOption) (*Receiver[T], error) {
	s, info, err := openStream(ctx, c, m.m, q)
	if err != nil {
		return nil, err
	}
	return &Receiver[T]{&s.inbound, info.OnReceive, optionsOf(opts)}, nil
}

// Items is Open as an iterator: the stream is opened when the loop begins, and closed when the loop
// is left. If it cannot be opened, or does not end in order, the error comes last.
func Items[Q, T any](ctx context.Context, c *Client, m Stream[Q, T], q *Q, opts ...CallOption) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		r, err := Open(ctx, c, m, q, opts...)
		if err != nil {
			yield(nil, err)
			return
		}
		r.All()(yield)
	}
}

// Upload is an open client stream at its client. One goroutine at a time may send, and one may
// receive at the same time. Any may call Close.
type Upload[Q, R any] struct {
	s       *clientStream
	sending func(item any) error
	answer  Receiver[R]
}

// OpenClientStream opens a stream whose items the client sends. The server has to speak version 2
// of the protocol: ErrVersion.
func OpenClientStream[Q, R any](ctx context.Context, c *Client, m ClientStream[Q, R], opts ...CallOption) (*Upload[Q, R], error) {
	s, info, err := openStream(ctx, c, m.m, nil)
	if err != nil {
		return nil, err
	}
	return &Upload[Q, R]{s, info.OnSend, Receiver[R]{&s.inbound, info.OnReceive, optionsOf(opts)}}, nil
}

// Send sends an item, which is the caller's again when Send returns. It waits while the stream's
// window is full: the server grants more as its handler takes items. It also waits while more than
// 1 MiB is queued for the connection. If the server has answered before, Send returns io.EOF, and
// Receive the answer. Every other error is the stream's, or that of an item that cannot be sent
// (ErrBadMessage, ErrTooLarge, the error of Info.OnSend): the stream goes on then.
func (u *Upload[Q, R]) Send(item *Q) error { return u.s.sendItem(item, u.sending) }

// CloseSend ends the items: the server's handler's Receive returns io.EOF behind the last one. Send
// fails afterwards.
func (u *Upload[Q, R]) CloseSend() { u.s.closeSend() }

// CloseAndReceive ends the items, and waits for the answer.
func (u *Upload[Q, R]) CloseAndReceive() (*R, error) {
	u.s.closeSend()
	return u.Receive()
}

// Receive waits for the answer. The server may answer before the items have ended. It is called at
// most once.
func (u *Upload[Q, R]) Receive() (*R, error) {
	defer u.answer.fillTargets(io.EOF)
	if err := u.s.awaitEnd(); err != nil {
		return nil, err
	}
	r := new(R)
	if err := u.s.l.ledger.decodeAnswer(u.s.m, u.s.call.reply, r); err != nil {
		return nil, err
	}
	if u.answer.received != nil {
		if err := u.answer.received(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Close abandons the stream, if it has not ended: the handler's context is cancelled, and
// Receive returns context.Canceled. Any goroutine.
func (u *Upload[Q, R]) Close() { u.s.closeStream(nil) }

// Header returns the metadata that the handler has sent before its answer (SetHeader). It is
// complete once Receive has returned.
func (u *Upload[Q, R]) Header() Pairs { return u.s.headerMeta() }

// Trailer returns the metadata that the handler has sent with its answer (SetTrailer). It is
// complete once Receive has returned.
func (u *Upload[Q, R]) Trailer() Pairs { return u.s.trailerMeta() }

// Dialog is an open stream in both directions at its client. One goroutine at a time may send, and
// one may receive at the same time: a caller that sends more than a window without receiving needs
// two, if the handler does the same. The items of the server come as those of every Receiver.
type Dialog[Q, T any] struct {
	Receiver[T]
	s       *clientStream
	sending func(item any) error
}

// OpenBidiStream opens a stream in both directions. The server has to speak version 2 of the
// protocol: ErrVersion.
func OpenBidiStream[Q, T any](ctx context.Context, c *Client, m BidiStream[Q, T], opts ...CallOption) (*Dialog[Q, T], error) {
	s, info, err := openStream(ctx, c, m.m, nil)
	if err != nil {
		return nil, err
	}
	return &Dialog[Q, T]{Receiver[T]{&s.inbound, info.OnReceive, optionsOf(opts)}, s, info.OnSend}, nil
}

// Send is Upload's Send. After the end of the stream in order it returns io.EOF.
func (d *Dialog[Q, T]) Send(item *Q) error { return d.s.sendItem(item, d.sending) }

// CloseSend ends the items that are sent: the server's handler's Receive returns io.EOF
// behind the last one. Send fails afterwards. Items can still be received.
func (d *Dialog[Q, T]) CloseSend() { d.s.closeSend() }

// sendItem implements Send. sending is Info.OnSend; nil: none.
func (s *clientStream) sendItem(item any, sending func(any) error) error {
	if sending != nil {
		if err := sending(item); err != nil {
			return err
		}
	}
	return s.sendWhenRoom(item)
}

// fillTargets sets the targets of the options from the answer so far. err: the stream has ended.
func (r *Receiver[T]) fillTargets(err error) {
	if r.opts.header != nil {
		*r.opts.header = r.Header()
	}
	if r.opts.trailer != nil && err != nil {
		*r.opts.trailer = r.Trailer()
	}
}
