package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// The files in testdata were recorded with the last release that knew version 1 only: each line is
// the private data or the frames of one side. "C" is the client.
const (
	recordedServer = "testdata/version1-server.txt"
	recordedClient = "testdata/version1-client.txt"
)

// spoken is a recorded line.
type spoken struct {
	client bool
	b      []byte
}

// repeated is a byte that is repeated in a recorded line.
var repeated = regexp.MustCompile(`([0-9a-f]{2})\{(\d+)\}`)

// recorded reads a recorded exchange.
func recorded(t *testing.T, file string) (lines []spoken) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		who, data, _ := strings.Cut(s.Text(), " ")
		data = repeated.ReplaceAllStringFunc(data, func(run string) string {
			n, _ := strconv.Atoi(run[3 : len(run)-1])
			return strings.Repeat(run[:2], n)
		})
		b, err := hex.DecodeString(data)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, spoken{who == "C", b})
	}
	return lines
}

// handleVersion1 registers the handlers of the recorded exchange.
func handleVersion1(s *Server) {
	handleEcho(s)
	handleCount(s)
	HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) {
		return nil, &Error{Code: 1001, Message: "no", Details: []byte("details")}
	})
	HandleRaw(s, block, func(ctx context.Context, _, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
}

// A client of version 1 gets the bytes that it got from a server of its time.
func TestServerSpeaksVersion1(t *testing.T) {
	lines := recorded(t, recordedServer)
	inWorld(t, rigConfig{}, handleVersion1, func(r *rig) {
		p := r.Probe()
		c := &raw{p, r.CreateID(p.PID(), rdma.IDConfig{})}
		p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: lines[0].b})
		e := actortest.Next[*rdma.Established](p)
		if got := e.PrivateData[:min(8, len(e.PrivateData))]; !bytes.Equal(got, lines[1].b) {
			r.t.Errorf("the server's hello is %x, want %x", got, lines[1].b)
		}
		for i, line := range lines[2:] {
			if line.client {
				c.say(line.b)
				r.Wait()
				continue
			}
			var got []byte
			for len(got) < len(line.b) {
				got = append(got, actortest.Next[*rdma.Received](p).Data...)
			}
			if !bytes.Equal(got, line.b) {
				r.t.Fatalf("line %d: the server sends %x, want %x", i+3, got, line.b)
			}
		}
	})
}

// A server of version 1 gets the bytes that it got from a client of its time, except for the byte
// of the hello that announces later versions.
func TestClientSpeaksVersion1(t *testing.T) {
	lines := recorded(t, recordedClient)
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far := w.Host("mem1", there)
		next, had := 2, []byte(nil)
		server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
			case *rdma.ConnectRequest:
				hello := bytes.Clone(m.PrivateData[:8])
				hello[3] = 0
				if !bytes.Equal(hello, lines[0].b) {
					w.T().Errorf("the client's hello is %x, want %x", hello, lines[0].b)
				}
				ctx.Respond(&rdma.Accept{PrivateData: lines[1].b})
			case *rdma.Received:
				for had = append(had, m.Data...); next < len(lines) && lines[next].client; {
					want := lines[next].b
					if len(had) < len(want) {
						return
					}
					if !bytes.Equal(had[:len(want)], want) {
						w.T().Errorf("line %d: the client sends %x, want %x", next+1, had, want)
					}
					had = had[len(want):]
					for next++; next < len(lines) && !lines[next].client; next++ {
						ctx.Respond(rdma.NewSend(lines[next].b))
					}
				}
			}
		}, far.OnLoop()))
		w.Wait()
		c, err := Dial(w.T().Context(), w.Runtime(), there+":7471", ClientConfig{StreamWindow: 1 << 10})
		if err != nil {
			w.T().Fatal(err)
		}
		callVersion1(w, c)
		if w.Wait(); next != len(lines) || len(had) > 0 {
			w.T().Errorf("%d of %d lines were spoken, and %x", next, len(lines), had)
		}
		c.Close()
		w.System().Root.Stop(server)
	})
}

// callVersion1 makes the calls of the recorded exchange.
func callVersion1(w *actortest.World, c *Client) {
	t, ctx := w.T(), w.T().Context()
	if got, err := CallRaw(WithMetadata(ctx, "key", "value"), c, echo, []byte("hello"), nil); err != nil || string(got) != "hello" {
		t.Error(got, err)
	}
	_, err := CallRaw(ctx, c, fail, []byte("x"), nil)
	var e *Error
	if !errors.As(err, &e) || e.Code != 1001 || e.Message != "no" || string(e.Details) != "details" {
		t.Error(err)
	}
	in, err := Open(ctx, c, count, wrapperspb.Int64(3))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range in.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d items", n)
	}
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := CallRaw(within, c, echo, nil, nil); err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := CallRaw(within, c, block, nil, nil)
		ended <- err
	}()
	w.Wait()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.Wait()
	endless, err := Open(ctx, c, count, wrapperspb.Int64(-1))
	if err != nil {
		t.Fatal(err)
	}
	w.Wait()
	endless.Close()
	w.Wait()
}
