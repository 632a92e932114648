package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// An answer, or an item of a server, that exceeds the method's MaxResponse fails its call with
// ErrTooLarge, which names the field and its value: at the server, if that knows the limit, and
// otherwise at the client. Calls of all kinds get what is as large as the limit, whole or in parts.
// The connection goes on, and no memory is kept.
func TestMaxResponse(t *testing.T) {
	for _, most := range []int{100, 100 << 10} {
		limit := MethodConfig{MaxResponse: most}
		for name, of := range map[string]struct {
			server  MethodConfig
			service map[string]MethodConfig
		}{"known to both": {limit, nil}, "known to the client": {MethodConfig{}, map[string]MethodConfig{"": limit}}} {
			t.Run(fmt.Sprintf("%d bytes, %s", most, name), func(t *testing.T) {
				var (
					call   = NewMethod[Bytes, Bytes]("test.MostCall", of.server)
					stream = NewStream[Bytes, Bytes]("test.MostStream", of.server)
					upload = NewClientStream[Bytes, Bytes]("test.MostUpload", of.server)
				)
				cfg := wide
				cfg.client.Service.Methods = of.service
				var size int
				inWorld(t, cfg, func(s *Server) {
					answer := func() *Bytes { b := make(Bytes, size); return &b }
					Handle(s, call, func(context.Context, *Bytes) (*Bytes, error) { return answer(), nil })
					HandleStream(s, stream, func(ctx context.Context, _ *Bytes, out *Sender[Bytes]) error {
						err := out.Send(&Bytes{})
						if err == nil {
							err = out.Send(answer())
							if refused := errors.Is(err, ErrTooLarge) && ctx.Err() == nil; refused != (of.service == nil && size > most) {
								t.Errorf("an item of %d bytes is refused at the server: %t", size, refused)
							}
						}
						return err
					})
					HandleClientStream(s, upload, func(context.Context, *Receiver[Bytes]) (*Bytes, error) { return answer(), nil })
				}, func(r *rig) {
					do, replies := asks(r)
					kinds := map[string]func() (*Bytes, error){
						"call": func() (*Bytes, error) { return Call(r.t.Context(), r.c, call, &Bytes{}) },
						"Go": func() (*Bytes, error) {
							do(func(ctx actor.Context) { Go(ctx, r.c, call, &Bytes{}) })
							got := (<-replies).(*Reply[Bytes])
							return got.Value, got.Err
						},
						"stream": func() (*Bytes, error) {
							in, err := Open(r.t.Context(), r.c, stream, &Bytes{})
							if err != nil {
								return nil, err
							}
							defer in.Close()
							if first, err := in.Receive(); err != nil || len(*first) != 0 {
								return nil, fmt.Errorf("the item before it: %w", err)
							}
							return in.Receive()
						},
						"upload": func() (*Bytes, error) {
							up, err := OpenClientStream(r.t.Context(), r.c, upload)
							if err != nil {
								return nil, err
							}
							return up.CloseAndReceive()
						},
					}
					l := r.c.link()
					for kind, get := range kinds {
						for _, size = range []int{most, most + 1, 5 * most, most} {
							got, err := get()
							text, what := fmt.Sprint(err), "the answer"
							if kind == "stream" {
								what = "an item"
							}
							switch {
							case size > most && (!errors.Is(err, ErrTooLarge) || !strings.Contains(text, fmt.Sprintf("%s has more than %d bytes (MaxResponse", what, most))):
								r.t.Errorf("%s, %d bytes: %v, want ErrTooLarge", kind, size, err)
							case size <= most && (err != nil || len(*got) != size):
								r.t.Errorf("%s, %d bytes: %v", kind, size, err)
							}
						}
					}
					r.quiet()
					for _, m := range r.s.Inspect() {
						if atServer := m.Failed > 0; m.Method == "test.MostCall" && atServer != (of.service == nil) {
							r.t.Errorf("calls fail at the server: %t", atServer)
						}
					}
					if n := r.c.beyond.Load(); n != 0 || r.c.link() != l {
						r.t.Errorf("the client keeps %d bytes; the same connection: %t", n, r.c.link() == l)
					}
				})
			})
		}
	}
}

// A client does not wait for the rest of an answer or an item that is too large: the call fails
// with the part that exceeds the limit. It confirms further parts, as the server may wait for that,
// and keeps none.
func TestTooLargeAnswerFailsEarly(t *testing.T) {
	limited := MethodConfig{MaxResponse: 1000}
	stream := NewStream[Bytes, Bytes]("test.MostStream", limited)
	for name, get := range map[string]func(h *handReader) error{
		"answer": func(h *handReader) error {
			_, err := CallRaw(h.T().Context(), h.c, NewRawMethod("test.MostCall", limited), nil, nil)
			return err
		},
		"item": func(h *handReader) error {
			in, err := Open(h.T().Context(), h.c, stream, &Bytes{})
			for err == nil {
				_, err = in.Receive()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inHand(t, ClientConfig{}, func(h *handReader) {
				ended := make(chan error, 1)
				go func() { ended <- get(h) }()
				h.Wait()
				id := wire.NewCallID(0, 1)
				h.say(part(id, strings.Repeat("x", 600)))
				h.Wait()
				if len(ended) > 0 {
					h.T().Fatalf("it ended before there was too much: %v", <-ended)
				}
				h.say(part(id, strings.Repeat("x", 401)))
				if err := <-ended; !errors.Is(err, ErrTooLarge) || errors.Is(err, io.EOF) {
					h.T().Errorf("the call ended with %v", err)
				}
				h.Wait() // the cancellation has arrived
				h.got = nil
				h.say(part(id, strings.Repeat("x", confirmBytes)))
				h.Wait()
				confirmed := false
				for _, b := range h.got {
					f, _, _, _ := wire.ParseFrame(b)
					confirmed = confirmed || f.Type == wire.FrameTaken && f.Arg >= confirmBytes
				}
				if n := h.c.beyond.Load(); n != 0 || !confirmed {
					h.T().Errorf("the client keeps %d bytes; later parts are confirmed: %t", n, confirmed)
				}
			})
		})
	}
}
