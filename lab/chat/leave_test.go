package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/lab/chat/console"
	"github.com/rdmactor/rdmactor/lab/chat/room"
)

// A user can leave whatever the server does.
func TestLeaving(t *testing.T) {
	const addr = "10.0.0.9:7471"
	for _, tt := range []struct {
		name   string
		person bool
		lines  int
		away   func(w *actortest.World)
		within time.Duration
		want   []string // substrings of the error
		notice string
	}{
		{
			"a person, the server gone", true, 70, func(w *actortest.World) { w.Crash("mem9") }, 0,
			[]string{"64 lines not sent"},
			"not sent, 64 lines before it wait",
		},
		{
			"a person, the server stalled", true, 40, func(w *actortest.World) { w.Freeze("mem9") }, leaveFor,
			[]string{"32 lines may not have arrived", "8 lines not sent: " + addr + " does not take what is sent"},
			"leaving when",
		},
		{
			"a pipe, the server gone", false, 200, func(w *actortest.World) { w.Crash("mem9") }, console.PipeFor,
			[]string{"no line for 10s", "64 lines not sent"},
			"is lost",
		},
		{
			"a pipe, the server stalled", false, 40, func(w *actortest.World) { w.Freeze("mem9") }, console.PipeFor,
			[]string{"8 lines not sent: " + addr + " does not take what is sent"},
			"",
		},
		{
			"a long pipe, the server stalled", false, 200, func(w *actortest.World) { w.Freeze("mem9") }, console.PipeFor + leaveFor,
			[]string{"no line for 10s", "64 lines not sent: " + addr + " does not take what is sent"},
			"leaving when 64 lines",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				serve(w, w.Host("mem9", "10.0.0.9"), addr)
				ann := enterWorld(w, w.Runtime(), addr, "ann", room.Lobby, tt.person)
				tt.away(w)
				begin := w.Now()
				go func() {
					defer close(ann.typed)
					for range tt.lines {
						ann.typed <- "line"
					}
				}()
				err := <-ann.ended
				if d := w.Now().Sub(begin); d > tt.within+time.Millisecond {
					t.Errorf("it took %v", d)
				}
				for _, want := range tt.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want %q", err, want)
					}
				}
				if ann.count(tt.notice) == 0 {
					t.Errorf("ann saw %q, want %q", ann.shown, tt.notice)
				}
				go func() { // the rest of a pipe that is not read
					for range ann.typed {
					}
				}()
			})
		})
	}
}

// Leaving while the first connection is being made is not a failure.
func TestLeavingBeforeThere(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		w.Silence("10.0.0.9")
		s := &script{typed: make(chan string), person: true}
		ctx, leave := context.WithCancel(w.T().Context())
		close(s.typed)
		if err := talk(ctx, leave, s, w.Runtime(), w.System(), settings{addr: "10.0.0.9:7471", hello: hello{"ann", room.Lobby}}); err != nil {
			t.Error(err)
		}
		if w.Elapsed() != 0 {
			t.Errorf("it took %v", w.Elapsed())
		}
	})
}

// The client does not wait for a server that accepts and then sends nothing.
func TestMuteServer(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Request(w.CreateID(ctx.Self()), &rdma.Serve{Addr: chatAddr})
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{})
			}
		}, w.Runtime().OnLoop()))
		w.Wait()
		s := &script{typed: make(chan string), person: true}
		ctx, leave := context.WithCancel(w.T().Context())
		defer leave()
		err := talk(ctx, leave, s, w.Host("mem1", "10.0.0.2"), w.System(), settings{addr: chatAddr, hello: hello{"ann", room.Lobby}})
		if err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Error(err)
		}
		close(s.typed)
	})
}

// full is a script whose output is full.
type full struct{ *script }

var errFull = errors.New("no space left")

func (full) Print(string) error { return errFull }

func TestFullOutput(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		serve(w, w.Runtime(), chatAddr)
		s := full{&script{typed: make(chan string)}}
		ctx, leave := context.WithCancel(w.T().Context())
		defer leave()
		err := talk(ctx, leave, s, w.Host("mem1", "10.0.0.2"), w.System(), settings{addr: chatAddr, hello: hello{"ann", room.Lobby}})
		if !errors.Is(err, errFull) {
			t.Error(err)
		}
		close(s.typed)
	})
}
