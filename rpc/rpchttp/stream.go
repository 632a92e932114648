package rpchttp

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/rdmactor/rdmactor/rpc"
)

// The flags of a message in a stream, which precede its length (4 bytes).
const (
	flagCompressed = 1 << 0
	flagEnd        = 1 << 1
	envelopeLen    = 5
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// serveStream carries a stream of any kind.
func (h *Handler) serveStream(ctx context.Context, w http.ResponseWriter, r *http.Request, m *method, f *format) {
	s := &stream{h: h, w: w, in: r.Body, m: m, f: f, flush: http.NewResponseController(w)}
	_ = s.flush.EnableFullDuplex() // HTTP/2 has it anyway
	w.Header().Set("Content-Type", "application/connect+"+f.name)
	var err error
	switch {
	case m.desc.IsStreamingClient() && m.desc.IsStreamingServer():
		err = s.runBidiStream(ctx)
	case m.desc.IsStreamingClient():
		err = s.runClientStream(ctx)
	default:
		err = s.runServerStream(ctx)
	}
	s.sendEnd(ctx, err)
}

// stream is a stream on its way between an HTTP request and the server.
type stream struct {
	h       *Handler
	w       http.ResponseWriter
	in      io.Reader
	m       *method
	f       *format
	flush   *http.ResponseController
	begun   bool // headers were sent
	trailer rpc.Pairs
}

// runServerStream carries a stream of the server.
func (s *stream) runServerStream(ctx context.Context) error {
	q, err := s.receiveItem()
	if errors.Is(err, io.EOF) {
		return newWireError("invalid_argument", "there is no request")
	}
	if err != nil {
		return err
	}
	in, err := rpc.Open(ctx, s.h.client, s.m.server, q)
	if err != nil {
		return err
	}
	defer in.Close()
	return s.copyItems(in)
}

// runClientStream carries a stream of the client.
func (s *stream) runClientStream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, err := rpc.OpenClientStream(ctx, s.h.client, s.m.client)
	if err != nil {
		return err
	}
	defer out.Close()
	stop := s.forwardItems(out, cancel)
	reply, err := out.Receive()
	s.trailer = out.Trailer()
	if err = stop(ctx, err); err != nil {
		return err
	}
	s.sendHeaders(out.Header())
	return s.sendItem(reply)
}

// runBidiStream carries a stream in both directions.
func (s *stream) runBidiStream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d, err := rpc.OpenBidiStream(ctx, s.h.client, s.m.bidi)
	if err != nil {
		return err
	}
	defer d.Close()
	stop := s.forwardItems(d, cancel)
	return stop(ctx, s.copyItems(&d.Receiver))
}

// outgoing is the sending side of a client's stream.
type outgoing interface {
	Send(item *rpc.Bytes) error
	CloseSend()
}

// forwardItems sends the items of the request on a separate goroutine, which cancels the stream
// with the error of an item that cannot be sent. The returned function ends that goroutine when the
// stream has ended with err, and returns the error that ended it. ctx is the stream's.
func (s *stream) forwardItems(out outgoing, cancel context.CancelCauseFunc) (stop func(ctx context.Context, err error) error) {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for {
			item, err := s.receiveItem()
			if errors.Is(err, io.EOF) {
				out.CloseSend()
				return
			}
			if err == nil {
				err = out.Send(item)
			}
			if errors.Is(err, io.EOF) { // the server has ended it
				return
			}
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	return func(ctx context.Context, err error) error {
		if cause := context.Cause(ctx); err != nil && !errors.Is(cause, ctx.Err()) {
			err = cause // the goroutine's
		}
		if s.flush.SetReadDeadline(past) == nil { // the goroutine's read ends
			<-sent
		}
		return err
	}
}

// copyItems sends the items of in.
func (s *stream) copyItems(in *rpc.Receiver[rpc.Bytes]) error {
	for {
		item, err := in.Receive()
		if err != nil {
			s.trailer = in.Trailer()
			s.sendHeaders(in.Header())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		s.sendHeaders(in.Header())
		if err = s.sendItem(item); err != nil {
			return err
		}
	}
}

// receiveItem returns the next item of the request; io.EOF: there is none.
func (s *stream) receiveItem() (*rpc.Bytes, error) {
	var head [envelopeLen]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = newWireError("invalid_argument", "the stream ends within an item")
		}
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	switch {
	case head[0]&flagCompressed != 0:
		return nil, newWireError("unimplemented", "compressed items are not supported")
	case head[0] != 0:
		return nil, newWireError("invalid_argument", "an item has the flags %#x", head[0])
	case uint64(n) > uint64(s.h.cfg.MaxMessage):
		return nil, newWireError("resource_exhausted", "an item has %d bytes, the limit is %d", n, s.h.cfg.MaxMessage)
	}
	b, err := io.ReadAll(io.LimitReader(s.in, int64(n))) // grows with what comes
	if err == nil && len(b) < int(n) {
		err = newWireError("invalid_argument", "the stream ends within an item")
	}
	if err != nil {
		return nil, err
	}
	if b, err = s.f.fromHTTP(b, s.m.desc.Input()); err != nil {
		return nil, newWireError("invalid_argument", "an item: %v", err)
	}
	item := rpc.Bytes(b)
	return &item, nil
}

// sendHeaders sends the headers, once.
func (s *stream) sendHeaders(header rpc.Pairs) {
	if !s.begun {
		s.begun = true
		addHeaders(s.w, header, "")
	}
}

// sendItem sends an item.
func (s *stream) sendItem(item *rpc.Bytes) error {
	b, err := s.f.toHTTP(*item, s.m.desc.Output())
	if err != nil {
		return newWireError("internal", "an item: %v", err)
	}
	return s.writeEnvelope(0, b)
}

func (s *stream) writeEnvelope(flags byte, b []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(b)))
	if _, err := s.w.Write(append(head, b...)); err != nil {
		return err
	}
	return s.flush.Flush()
}

// sendEnd sends the end of the stream: its error, and the metadata behind the items.
func (s *stream) sendEnd(ctx context.Context, err error) {
	var last struct {
		Error    *wireError          `json:"error,omitempty"`
		Metadata map[string][]string `json:"metadata,omitempty"`
	}
	if err != nil {
		last.Error = s.h.wireErrorOf(requestError(ctx, err))
	}
	for k, v := range s.trailer.All() {
		if last.Metadata == nil {
			last.Metadata = make(map[string][]string)
		}
		last.Metadata[k] = append(last.Metadata[k], v)
	}
	b, _ := json.Marshal(last)      // cannot fail with these types
	_ = s.writeEnvelope(flagEnd, b) // the client may have gone
}
