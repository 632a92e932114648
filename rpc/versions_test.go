package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// exchange is a recorded one between a client and a server of the same version, which was recorded
// before there was a later one. server is what a client of that version got, and client what a
// server did. A line is everything that one side has sent before the other side has. "aa{9}" is
// nine bytes aa.
type exchange struct {
	version        uint8
	server, client string // files
	handle         func(*Server)
	call           func(*actortest.World, *Client)
	cfg            ClientConfig
	id             rdma.IDConfig // of the recorded side
}

var exchanges = []exchange{
	{1, "testdata/version1-server.txt", "testdata/version1-client.txt", handleVersion1, callVersion1, ClientConfig{StreamWindow: 1 << 10}, rdma.IDConfig{}},
	{2, "testdata/version2.txt", "testdata/version2.txt", handleRecorded, callRecorded, ClientConfig{}, rdma.IDConfig{MaxMessage: defaultMessage}},
	{3, "testdata/version3.txt", "testdata/version3.txt", handleRecorded, callRecorded, ClientConfig{}, rdma.IDConfig{MaxMessage: defaultMessage}},
}

var meta = NewRawMethod("test.Meta")

// recordedLarge is the size of the large items of the exchanges.
const recordedLarge = 17_000

// handleRecorded registers the handlers of the exchanges.
func handleRecorded(s *Server) {
	handleVersion1(s)
	handleTalk(s)
	handleSum(s)
	HandleRaw(s, meta, func(ctx context.Context, q, reply []byte) ([]byte, error) {
		v, _ := Metadata(ctx, "key")
		err := errors.Join(SetHeader(ctx, "header", v), SetTrailer(ctx, "trailer", v))
		return append(reply, q...), err
	})
}

// callRecorded makes the calls of the exchanges.
func callRecorded(w *actortest.World, c *Client) {
	t, ctx := w.T(), w.T().Context()
	defer w.Wait()
	if got, err := CallRaw(WithMetadata(ctx, "key", "value"), c, meta, []byte("hello"), nil); err != nil || string(got) != "hello" {
		t.Error(got, err)
	}
	w.Wait()
	for _, n := range []int{recordedLarge, 70_000} {
		if got, err := CallRaw(ctx, c, echo, make([]byte, n), nil); err != nil || len(got) != n {
			t.Error(len(got), err)
		}
		w.Wait()
	}
	up, err := OpenClientStream(ctx, c, sum)
	if err != nil {
		t.Fatal(err)
	}
	w.Wait()
	for i := range int64(3) {
		if err := up.Send(wrapperspb.Int64(i)); err != nil {
			t.Error(err)
		}
		w.Wait()
	}
	if got, err := up.CloseAndReceive(); err != nil || got.Value != 3 {
		t.Error(got, err)
	}
	w.Wait()
	d, err := OpenBidiStream(ctx, c, talk)
	if err != nil {
		t.Fatal(err)
	}
	w.Wait()
	for _, n := range []int{3, recordedLarge, recordedLarge} {
		item := make(Bytes, n)
		if err := d.Send(&item); err != nil {
			t.Error(err)
		}
		if got, err := d.Receive(); err != nil || len(*got) != n {
			t.Error(err)
		}
		w.Wait()
	}
	d.CloseSend()
	if _, err := d.Receive(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	w.Wait()
	within, cancel := context.WithCancelCause(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := CallRaw(within, c, block, nil, nil)
		ended <- err
	}()
	w.Wait()
	if _, err := CallRaw(ctx, c, echo, nil, nil); err != nil { // the other one is being handled
		t.Error(err)
	}
	w.Wait()
	cancel(errors.New("a reason"))
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A client of a version gets the bytes that it got from a server of its time.
func TestServerSpeaksOldVersions(t *testing.T) {
	for _, x := range exchanges {
		version, lines := x.version, recorded(t, x.server)
		inWorld(t, rigConfig{}, x.handle, func(r *rig) {
			p := r.Probe()
			c := &raw{p, r.CreateID(p.PID(), x.id)}
			p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: lines[0].b})
			e := actortest.Next[*rdma.Established](p)
			if got := e.PrivateData[:min(8, len(e.PrivateData))]; !bytes.Equal(got, lines[1].b) {
				r.t.Errorf("version %d: the server's hello is %x, want %x", version, got, lines[1].b)
			}
			for i, line := range lines[2:] {
				if line.client {
					eachFrame(r.t, line.b, func(b []byte) { c.say(b) })
					r.Wait()
					continue
				}
				var got []byte
				for len(got) < len(line.b) {
					got = append(got, actortest.Next[*rdma.Received](p).Data...)
				}
				if !bytes.Equal(got, line.b) {
					r.t.Fatalf("version %d, line %d: the server sends %s, want %s", version, i+3, framesOf(got), framesOf(line.b))
				}
			}
		})
	}
}

// A server of a version gets the bytes that it got from a client of its time, except for the byte
// of the hello that announces later versions.
func TestClientSpeaksOldVersions(t *testing.T) {
	for _, x := range exchanges {
		version, lines := x.version, recorded(t, x.client)
		actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
			far := w.Host("mem1", there)
			next, had := 2, []byte(nil)
			server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					ctx.Send(far.CreateID(ctx.Self(), x.id), &rdma.Serve{Addr: there + ":7471"})
				case *rdma.ConnectRequest:
					hello := bytes.Clone(m.PrivateData[:8])
					if hello[3] = lines[0].b[3]; !bytes.Equal(hello, lines[0].b) {
						w.T().Errorf("version %d: the client's hello is %x, want %x", version, hello, lines[0].b)
					}
					ctx.Respond(&rdma.Accept{PrivateData: lines[1].b})
				case *rdma.Received:
					for had = append(had, m.Data...); next < len(lines) && lines[next].client; {
						want := lines[next].b
						if len(had) < len(want) {
							return
						}
						if !bytes.Equal(had[:len(want)], want) {
							w.T().Errorf("version %d, line %d: the client sends %s, want %s", version, next+1, framesOf(had), framesOf(want))
						}
						had = had[len(want):]
						for next++; next < len(lines) && !lines[next].client; next++ {
							eachFrame(w.T(), lines[next].b, func(b []byte) { ctx.Respond(rdma.NewSend(b)) })
						}
					}
				}
			}, far.OnLoop()))
			w.Wait()
			c, err := Dial(w.T().Context(), w.Runtime(), there+":7471", x.cfg)
			if err != nil {
				w.T().Fatal(err)
			}
			x.call(w, c)
			if w.Wait(); next != len(lines) || len(had) > 0 {
				w.T().Errorf("version %d: %d of %d lines were spoken, and %s", version, next, len(lines), framesOf(had))
			}
			c.Close()
			w.System().Root.Stop(server)
		})
	}
}

// eachFrame calls yield with each frame of b.
func eachFrame(t *testing.T, b []byte, yield func([]byte)) {
	t.Helper()
	for len(b) > 0 {
		_, _, rest, err := wire.ParseFrame(b)
		if err != nil {
			t.Fatal(err)
		}
		yield(b[:len(b)-len(rest)])
		b = rest
	}
}

// framesOf returns the headers of frames, for messages.
func framesOf(b []byte) (all string) {
	for len(b) > 0 {
		h, _, rest, err := wire.ParseFrame(b)
		if err != nil {
			return fmt.Sprintf("%s, %d bytes", all, len(b))
		}
		all += fmt.Sprintf("%+v ", h)
		b = rest
	}
	return all
}
