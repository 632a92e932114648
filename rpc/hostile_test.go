package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// raw is a client, or a server, that puts its frames together by hand.
type raw struct {
	*actortest.Probe
	id *actor.PID
}

// rawClient connects to the rig's server, and speaks version 1.
func (r *rig) rawClient() *raw { return r.rawClientOf(1) }

// rawClientOf does what rawClient does, for a version of the protocol.
func (r *rig) rawClientOf(version uint8) *raw {
	r.t.Helper()
	p := r.Probe()
	c := &raw{p, r.CreateID(p.PID(), rdma.IDConfig{})}
	h := wire.Hello{Version: 1, Latest: version, Window: 64}
	if version == 1 {
		h.Latest = 0
	}
	p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: h.Bytes()})
	actortest.Next[*rdma.Established](p)
	return c
}

func (c *raw) say(frames ...[]byte) { c.Send(c.id, rdma.NewSend(bytes.Join(frames, nil))) }

// frame returns a frame as on the wire.
func frame(h wire.Header, body string) []byte {
	h.Length = uint32(len(body))
	b := make([]byte, wire.HeaderLen, wire.HeaderLen+len(body))
	h.Put(b)
	return append(b, body...)
}

// answer returns the next frame that comes.
func (c *raw) answer(t *testing.T) (wire.Header, string) {
	t.Helper()
	h, body, rest, err := wire.ParseFrame(actortest.Next[*rdma.Received](c.Probe).Data)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%v, and %d bytes are left", err, len(rest))
	}
	return h, string(body)
}

var declareEcho = frame(wire.Header{Type: wire.FrameDeclare}, "test.Echo")

func TestHostileClient(t *testing.T) {
	long := frame(wire.Header{Type: wire.FrameCall}, "")
	binary.BigEndian.PutUint32(long[4:], 1<<31)
	testHostileClient(t, 1, map[string][][]byte{
		"a header that is cut off":       {make([]byte, wire.HeaderLen-1)},
		"a body that is cut off":         {long},
		"no type":                        {frame(wire.Header{}, "")},
		"an unknown type":                {frame(wire.Header{Type: 200}, "")},
		"a server's frame":               {frame(wire.Header{Type: wire.FrameReply}, "")},
		"a method declared twice":        {declareEcho, declareEcho},
		"a method declared out of order": {frame(wire.Header{Type: wire.FrameDeclare, Number: 1}, "x")},
		"a method without a name":        {frame(wire.Header{Type: wire.FrameDeclare}, "")},
		"a name that is too long":        {frame(wire.Header{Type: wire.FrameDeclare}, strings.Repeat("x", 256))},
		"a slot that is taken": {
			frame(wire.Header{Type: wire.FrameDeclare}, "test.Block"), frame(wire.Header{Type: wire.FrameCall, Call: 7}, ""), frame(wire.Header{Type: wire.FrameCall, Call: 7}, ""),
		},
		"a window for a call": {
			frame(wire.Header{Type: wire.FrameDeclare}, "test.Block"), frame(wire.Header{Type: wire.FrameCall, Call: 7}, ""),
			frame(wire.Header{Type: wire.FrameWindow, Call: 7, Arg: 1}, ""),
		},
		"a window without end": {
			frame(wire.Header{Type: wire.FrameDeclare}, "test.Count"), frame(wire.Header{Type: wire.FrameCall, Flags: wire.FlagStream, Call: 7}, "\x08\xff\xff\xff\xff\x07"),
			frame(wire.Header{Type: wire.FrameWindow, Call: 7, Arg: 1 << 31}, ""),
		},
		"garbage":                     {bytes.Repeat([]byte{0xa5}, 1000)},
		"an item, which came later":   {declareHeld, openHeld, item7("")},
		"an end, which came later":    {declareHeld, openHeld, end7},
		"a confirmation, as the same": {frame(wire.Header{Type: wire.FrameTaken, Arg: 1}, "")},
	})
	testHostileClient(t, 2, map[string][][]byte{
		"an item for a call":         {frame(wire.Header{Type: wire.FrameDeclare}, "test.Block"), frame(wire.Header{Type: wire.FrameCall, Call: 7}, ""), item7("")},
		"an end for a call":          {frame(wire.Header{Type: wire.FrameDeclare}, "test.Block"), frame(wire.Header{Type: wire.FrameCall, Call: 7}, ""), end7},
		"an item behind the end":     {declareHeld, openHeld, end7, item7("")},
		"two ends":                   {declareHeld, openHeld, end7, end7},
		"items beyond the window":    {declareHeld, openHeld, item7(strings.Repeat("x", 20<<10)), item7("x")},
		"a window for items only":    {frame(wire.Header{Type: wire.FrameDeclare}, "test.Sum"), frame(wire.Header{Type: wire.FrameCall, Flags: wire.FlagSends, Call: 7}, ""), frame(wire.Header{Type: wire.FrameWindow, Call: 7, Arg: 1}, "")},
		"a server's window":          {declareHeld, openHeld, frame(wire.Header{Type: wire.FrameWindow, Call: 7}, "")},
		"a window without end":       {declareHeld, openHeld, frame(wire.Header{Type: wire.FrameWindow, Call: 7, Arg: 1 << 31}, "")},
		"a reason that is cut off":   {declareHeld, openHeld, frame(wire.Header{Type: wire.FrameCancel, Call: 7}, "\x00\x09x")},
		"a confirmation of nothing":  {frame(wire.Header{Type: wire.FrameTaken, Arg: 1}, "")},
		"a confirmation of no bytes": {frame(wire.Header{Type: wire.FrameTaken}, "")},
		"a confirmation of 4 GiB":    {frame(wire.Header{Type: wire.FrameTaken, Arg: 1<<32 - 1}, "")},
		"a header":                   {declareHeld, openHeld, frame(wire.Header{Type: wire.FrameHeader, Call: 7}, "")},
		"a part":                     {declareHeld, openHeld, frame(wire.Header{Type: wire.FramePart, Call: 7}, "")},
		"a stream in a slot in use":  {declareHeld, openHeld, openHeld},
		"an item of an unknown type": {declareHeld, openHeld, frame(wire.Header{Type: wire.FrameTaken + 1, Call: 7}, "")},
	})
	blocked := frame(wire.Header{Type: wire.FrameDeclare}, "test.Block")
	testHostileClient(t, 3, map[string][][]byte{
		"more than was announced":     {blocked, announce(wire.Header{Call: 7}, 4), part(7, "12345")},
		"more behind the end":         {blocked, announce(wire.Header{Call: 7}, 4), part(7, "1234"), part(7, "")},
		"a part of a whole request":   {blocked, frame(wire.Header{Type: wire.FrameCall, Call: 7}, ""), part(7, "x")},
		"a part of 65 KiB":            {blocked, announce(wire.Header{Call: 7}, 100<<10), part(7, strings.Repeat("x", 65<<10))},
		"two requests in one slot":    {blocked, announce(wire.Header{Call: 7}, 4), announce(wire.Header{Call: 7}, 4)},
		"an item within another":      {declareHeld, openHeld, part(7, "x"), item7("x")},
		"an end within an item":       {declareHeld, openHeld, part(7, "x"), end7},
		"parts of an item, no window": {declareHeld, openHeld, item7(strings.Repeat("x", 20<<10)), part(7, "x")},
		"an item in parts, no window": {declareHeld, openHeld, item7(strings.Repeat("x", 20<<10)), frame(wire.Header{Type: wire.FrameItem, Flags: wire.FlagParts, Call: 7}, "x")},
		"an item for a request":       {blocked, announce(wire.Header{Call: 7}, 4), item7("x")},
	})
}

var (
	declareHeld = frame(wire.Header{Type: wire.FrameDeclare}, "test.Talk")
	openHeld    = frame(wire.Header{Type: wire.FrameCall, Flags: wire.FlagSends | wire.FlagStream, Call: 7}, "")
	end7        = frame(wire.Header{Type: wire.FrameEnd, Call: 7}, "")
)

func item7(body string) []byte { return frame(wire.Header{Type: wire.FrameItem, Call: 7}, body) }

// testHostileClient asserts that a client that sends these frames loses its connection, and that
// nothing else happens.
func testHostileClient(t *testing.T, version uint8, all map[string][][]byte) {
	t.Helper()
	for name, frames := range all {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{server: ServerConfig{StreamWindow: 16 << 10}}, func(s *Server) {
				handleEcho(s)
				handleBlock(s)
				handleCount(s)
				handleHeld(s)
				handleSum(s)
			}, func(r *rig) {
				c := r.rawClientOf(version)
				c.say(frames...)
				for {
					if e := actortest.Next[rdma.Event](c.Probe); e.Kind() == (&rdma.Closed{}).Kind() {
						break
					}
				}
				r.Wait()
				if n := r.s.InFlight(); n != 0 {
					r.t.Errorf("%d calls are still in flight", n)
				}
				r.nothingKept()
				r.good()
				if got, err := CallRaw(r.t.Context(), r.c, echo, []byte("old"), nil); err != nil || string(got) != "old" {
					r.t.Error(got, err)
				}
			})
		})
	}
}

// An error in one call's frames concerns that call only.
func TestCallsThatAreWrong(t *testing.T) {
	metadata := func(b string) string { return string(binary.BigEndian.AppendUint16(nil, uint16(len(b)))) + b }
	for name, c := range map[string]struct {
		call wire.Header
		body string
		code Code
		want string // of a reply
	}{
		"an undeclared method":          {call: wire.Header{Number: 1}, code: CodeUnknownMethod},
		"a stream that is none":         {call: wire.Header{Flags: wire.FlagStream}, code: CodeUnknownMethod},
		"a slot beyond the limit":       {call: wire.Header{Call: 4}, code: CodeOverloaded},
		"metadata that is cut off":      {call: wire.Header{Flags: wire.FlagMetadata}, body: "\x00", code: CodeBadMessage},
		"metadata that is too long":     {call: wire.Header{Flags: wire.FlagMetadata}, body: "\xff\xffx", code: CodeBadMessage},
		"a key without a value":         {call: wire.Header{Flags: wire.FlagMetadata}, body: metadata("\x01k"), code: CodeBadMessage},
		"an empty key":                  {call: wire.Header{Flags: wire.FlagMetadata}, body: metadata("\x00\x00\x00"), code: CodeBadMessage},
		"a value that is too long":      {call: wire.Header{Flags: wire.FlagMetadata}, body: metadata("\x01k\x00\x09v"), code: CodeBadMessage},
		"metadata, and flags we ignore": {call: wire.Header{Flags: wire.FlagMetadata | 0x80}, body: metadata("\x01k\x00\x01v") + "q", want: "q"},
		"no time at all left":           {call: wire.Header{Arg: 1}, body: "in time", want: "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{server: ServerConfig{MaxCalls: 4}}, handleEcho, func(r *rig) {
				p := r.rawClient()
				c.call.Type = wire.FrameCall
				p.say(declareEcho, frame(c.call, c.body))
				h, body := p.answer(r.t)
				switch {
				case c.code != 0 && (h.Type != wire.FrameError || Code(h.Number) != c.code || h.Flags&wire.FlagRefused == 0 || h.Call != c.call.Call):
					r.t.Errorf("answered with %+v %q", h, body)
				case c.code == 0 && (h.Type != wire.FrameReply || body != c.want):
					r.t.Errorf("answered with %+v %q", h, body)
				}
				// of nothing
				p.say(frame(wire.Header{Type: wire.FrameCancel, Call: 3}, ""), frame(wire.Header{Type: wire.FrameWindow, Call: 99}, ""),
					frame(wire.Header{Type: wire.FrameCall, Call: 2}, "still"))
				if h, body := p.answer(r.t); h.Type != wire.FrameReply || h.Call != 2 || body != "still" {
					r.t.Errorf("answered with %+v %q", h, body)
				}
			})
		})
	}
}

// A request contains the time that its handler may take, not a time of the caller's clock. If no
// cancel frame comes, the server's own clock ends the call.
func TestDeadlineOfTheServersOwn(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		for _, c := range []wire.Header{{Arg: 250_000}, {Arg: 250, Flags: wire.FlagMillis}} {
			p := r.rawClient()
			begin := r.Elapsed()
			c.Type, c.Call = wire.FrameCall, 5
			p.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Block"), frame(c, ""))
			h, _ := p.answer(r.t)
			d := r.Elapsed() - begin
			if h.Type != wire.FrameError || Code(h.Number) != CodeDeadline || h.Flags&wire.FlagRefused != 0 || d != 250*time.Millisecond {
				r.t.Errorf("%+v after %v", h, d)
			}
			if err := <-b.ended; !errors.Is(err, context.DeadlineExceeded) {
				r.t.Error(err)
			}
		}
	})
}

// If a client makes calls and does not read the answers, its further requests are not read. Other
// clients are not affected.
func TestClientThatNeverReads(t *testing.T) {
	handled := make(chan struct{}, 1<<16)
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleRaw(s, echo, func(_ context.Context, q, reply []byte) ([]byte, error) {
			handled <- struct{}{}
			if len(q) > 0 {
				return append(reply, q...), nil
			}
			return append(reply, make([]byte, 32<<10)...), nil
		}, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		p := r.rawClient()
		p.Ignore() // there is no room for most of it
		p.say(declareEcho)
		const each, messages = 10, 400
		for i := range messages {
			var frames [][]byte
			for n := range each {
				frames = append(frames, frame(wire.Header{Type: wire.FrameCall, Call: wire.CallID(i%100*each + n)}, ""))
			}
			p.say(frames...)
		}
		r.Wait()
		// The peer's credits, our messages ahead of them, the messages that wait in the connection,
		// and those beyond the high water.
		if n, most := len(handled), (32+ahead.Most.Messages)+highWater/(32<<10)+1; n > most || n < 32 {
			r.t.Errorf("%d requests were answered to nobody, want at most %d", n, most)
		}
		r.good()
		p.Send(p.id, &rdma.DestroyID{})
		r.Wait()
	})
}

// A client that cancels all its calls occupies no more places than it may have in flight.
func TestClientThatCancelsEverything(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{server: ServerConfig{MaxCallsInAll: 8}}, func(s *Server) {
		handleEcho(s)
		b = handleBlock(s)
	}, func(r *rig) {
		p := r.rawClient()
		p.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Block"))
		for round := range 50 {
			var frames [][]byte
			for slot := range 16 {
				id := wire.NewCallID(slot, uint16(round))
				frames = append(frames, frame(wire.Header{Type: wire.FrameCall, Call: id}, ""), frame(wire.Header{Type: wire.FrameCancel, Call: id}, ""))
			}
			p.say(frames...)
			for answers := 0; answers < 16; {
				for data := actortest.Next[*rdma.Received](p.Probe).Data; len(data) > 0; answers++ {
					var err error
					if _, _, data, err = wire.ParseFrame(data); err != nil {
						r.t.Fatal(err)
					}
				}
			}
		}
		r.Wait()
		if n := r.s.InFlight(); n != 0 {
			r.t.Errorf("%d calls are still in flight", n)
		}
		if n := r.s.workers.n; n > 8 {
			r.t.Errorf("%d goroutines", n)
		}
		_ = b
		r.good()
	})
}

// Calls that come together and block do not wait for one another.
func TestCallsOfOneMessageBlockNobody(t *testing.T) {
	var b *blocking
	inWorld(t, rigConfig{}, func(s *Server) { b = handleBlock(s) }, func(r *rig) {
		p := r.rawClient()
		frames := [][]byte{frame(wire.Header{Type: wire.FrameDeclare}, "test.Block")}
		for slot := range 5 {
			frames = append(frames, frame(wire.Header{Type: wire.FrameCall, Call: wire.CallID(slot)}, ""))
		}
		p.say(frames...)
		r.Wait()
		if n := len(b.began); n != 5 {
			r.t.Errorf("%d of 5 handlers were called", n)
		}
		close(b.release)
		r.Wait()
		if n := r.s.InFlight(); n != 0 {
			r.t.Errorf("%d calls are still in flight", n)
		}
	})
}

func TestForeignClients(t *testing.T) {
	for name, private := range map[string][]byte{
		"no hello": nil, "another protocol": []byte("GET / HTTP"), "another version": wire.Hello{Version: 2, Window: 64}.Bytes(),
		"no window": wire.Hello{Version: 1}.Bytes(), "a hello that is cut off": wire.Hello{Version: 1, Window: 64}.Bytes()[:7],
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
				p := r.Probe()
				p.Request(r.CreateID(p.PID(), rdma.IDConfig{}), &rdma.Dial{Addr: r.addr, PrivateData: private})
				e := actortest.Next[*rdma.Rejected](p)
				if h, ok := wire.ParseHello(e.PrivateData); !ok || h.Version != wire.HelloVersion {
					r.t.Errorf("rejected with %x", e.PrivateData)
				}
				actortest.Next[*rdma.Closed](p)
				r.good()
			})
		})
	}
}

func TestHostileServer(t *testing.T) {
	first := wire.NewCallID(0, 1)
	metadata := string(wire.AppendPair(nil, "k", "v"))
	reply := func(h wire.Header, body string) []byte { return frame(h, body) }
	for name, c := range map[string]struct {
		frames [][]byte
		is     error
		more   bool // the connection goes on
		stream bool // it is the answer to a stream
		old    bool // the server speaks version 1
		new    bool // the server speaks version 3; otherwise 2
	}{
		"garbage":                  {frames: [][]byte{bytes.Repeat([]byte{0xa5}, 100)}, is: unix.EPROTO},
		"a client's frame":         {frames: [][]byte{reply(wire.Header{Type: wire.FrameCall}, "")}, is: unix.EPROTO},
		"an unknown type":          {frames: [][]byte{reply(wire.Header{Type: 99}, "")}, is: unix.EPROTO},
		"a call that there is not": {frames: [][]byte{reply(wire.Header{Type: wire.FrameReply, Call: 77}, "")}, is: unix.EPROTO},
		"an earlier use of a slot": {frames: [][]byte{reply(wire.Header{Type: wire.FrameReply, Call: wire.NewCallID(0, 0)}, "")}, is: unix.EPROTO},
		"an item for a call":       {frames: [][]byte{reply(wire.Header{Type: wire.FrameItem, Call: wire.NewCallID(0, 1)}, "")}, is: unix.EPROTO},
		"an error that is cut off": {
			frames: [][]byte{reply(wire.Header{Type: wire.FrameError, Number: 1, Call: wire.NewCallID(0, 1)}, "\x00\x09x")}, is: unix.EPROTO,
		},
		"a code that nobody knows": {
			frames: [][]byte{reply(wire.Header{Type: wire.FrameError, Number: 60_000, Call: wire.NewCallID(0, 1)}, "\x00\x01x")}, more: true,
		},
		"an item that the window has no room for": {frames: [][]byte{
			frame(wire.Header{Type: wire.FrameItem, Call: wire.NewCallID(0, 1)}, strings.Repeat("x", 60<<10)),
			frame(wire.Header{Type: wire.FrameItem, Call: wire.NewCallID(0, 1)}, ""),
		}, is: unix.EPROTO, stream: true},
		"an item that just fits": {frames: [][]byte{
			frame(wire.Header{Type: wire.FrameItem, Call: wire.NewCallID(0, 1)}, "x"), frame(wire.Header{Type: wire.FrameReply, Call: wire.NewCallID(0, 1)}, ""),
		}, more: true, stream: true},
		"an answer":                   {frames: [][]byte{reply(wire.Header{Type: wire.FrameReply, Call: wire.NewCallID(0, 1)}, "")}, more: true},
		"a part, which came later":    {frames: [][]byte{reply(wire.Header{Type: wire.FramePart, Call: first}, "")}, is: unix.EPROTO, old: true},
		"a header, which came later":  {frames: [][]byte{reply(wire.Header{Type: wire.FrameHeader, Call: first}, metadata)}, is: unix.EPROTO, old: true},
		"a window, which came later":  {frames: [][]byte{reply(wire.Header{Type: wire.FrameWindow, Call: first, Arg: 1}, "")}, is: unix.EPROTO, old: true},
		"a window for a call":         {frames: [][]byte{reply(wire.Header{Type: wire.FrameWindow, Call: first, Arg: 1}, "")}, is: unix.EPROTO},
		"an end":                      {frames: [][]byte{reply(wire.Header{Type: wire.FrameEnd, Call: first}, "")}, is: unix.EPROTO},
		"a confirmation":              {frames: [][]byte{reply(wire.Header{Type: wire.FrameTaken, Arg: 1}, "")}, is: unix.EPROTO},
		"headers without end":         {frames: [][]byte{reply(wire.Header{Type: wire.FrameHeader, Call: first}, metadata), reply(wire.Header{Type: wire.FrameHeader, Call: first}, metadata)}, is: unix.EPROTO},
		"a header of 9 KiB":           {frames: [][]byte{reply(wire.Header{Type: wire.FrameHeader, Call: first}, strings.Repeat(metadata, 9<<10/len(metadata)))}, is: unix.EPROTO},
		"a header that is malformed":  {frames: [][]byte{reply(wire.Header{Type: wire.FrameHeader, Call: first}, "\x09k")}, is: unix.EPROTO},
		"a header behind an item":     {frames: [][]byte{reply(wire.Header{Type: wire.FrameItem, Call: first}, ""), reply(wire.Header{Type: wire.FrameHeader, Call: first}, metadata)}, is: unix.EPROTO, stream: true},
		"a trailer that is malformed": {frames: [][]byte{reply(wire.Header{Type: wire.FrameReply, Flags: wire.FlagTrailer, Call: first}, "\x00\x09k")}, is: unix.EPROTO},
		"parts without end": {frames: [][]byte{
			reply(wire.Header{Type: wire.FramePart, Call: first}, strings.Repeat("x", 60<<10)), reply(wire.Header{Type: wire.FramePart, Call: first}, strings.Repeat("x", 60<<10)),
		}, is: unix.EPROTO},
		"parts of an item without end": {frames: [][]byte{
			reply(wire.Header{Type: wire.FramePart, Call: first}, strings.Repeat("x", 60<<10)), reply(wire.Header{Type: wire.FramePart, Call: first}, strings.Repeat("x", 60<<10)),
		}, is: unix.EPROTO, stream: true},
		"an item within another": {frames: [][]byte{
			reply(wire.Header{Type: wire.FramePart, Call: first}, "x"), reply(wire.Header{Type: wire.FrameItem, Call: first}, "x"),
		}, is: unix.EPROTO, stream: true},
		"an item in parts beyond the window": {frames: [][]byte{
			reply(wire.Header{Type: wire.FrameItem, Call: first}, strings.Repeat("x", 60<<10)), reply(wire.Header{Type: wire.FramePart, Call: first}, "x"),
		}, is: unix.EPROTO, stream: true},
		"an answer in parts": {frames: [][]byte{
			reply(wire.Header{Type: wire.FrameHeader, Call: first}, metadata), reply(wire.Header{Type: wire.FramePart, Call: first}, "x"),
			reply(wire.Header{Type: wire.FrameReply, Flags: wire.FlagParts | wire.FlagTrailer, Call: first}, "\x00\x05"+metadata+"y"),
		}, more: true},
		"a confirmation of nothing":  {frames: [][]byte{reply(wire.Header{Type: wire.FrameTaken, Arg: 1}, "")}, is: unix.EPROTO, new: true},
		"a confirmation of no bytes": {frames: [][]byte{reply(wire.Header{Type: wire.FrameTaken}, "")}, is: unix.EPROTO, new: true},
		"a confirmation of 4 GiB":    {frames: [][]byte{reply(wire.Header{Type: wire.FrameTaken, Arg: 1<<32 - 1}, "")}, is: unix.EPROTO, new: true},
		"an error instead of the rest": {frames: [][]byte{
			reply(wire.Header{Type: wire.FramePart, Call: first}, "x"), reply(wire.Header{Type: wire.FrameError, Number: 1001, Call: first}, ""),
		}, is: errTaken, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				far := w.Host("mem1", there)
				server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch m := ctx.Message().(type) {
					case *actor.Started:
						ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
					case *rdma.ConnectRequest:
						good := wire.Hello{Version: 1, Latest: 2, Calls: 2}
						if c.old {
							good.Latest = 0
						} else if c.new {
							good.Latest = 3
						}
						ctx.Respond(&rdma.Accept{PrivateData: good.Bytes()})
					case *rdma.Received:
						if bytes.Contains(m.Data, []byte("test.")) {
							for _, f := range c.frames {
								ctx.Respond(rdma.NewSend(f))
							}
						}
					}
				}, far.OnLoop()))
				w.Wait()
				client, err := Dial(w.T().Context(), w.Runtime(), there+":7471", ClientConfig{StreamWindow: 32 << 10, MaxMessage: 64 << 10})
				if err != nil {
					w.T().Fatal(err)
				}
				if c.stream {
					var in *Receiver[Bytes]
					if in, err = Open(w.T().Context(), client, blobs, nil); err != nil {
						w.T().Fatal(err)
					}
					w.Wait() // all is there before the first read
					for _, err = range in.All() {
					}
				} else {
					_, err = CallRaw(w.T().Context(), client, echo, nil, nil)
				}
				if c.is != nil && !errors.Is(err, c.is) {
					w.T().Errorf("%v, want %v", err, c.is)
				}
				if w.Wait(); c.more != (client.link() != nil) {
					w.T().Errorf("there is a connection: %v", client.link() != nil)
				}
				client.Close()
				w.System().Root.Stop(server)
			})
		})
	}
}

// A repeated answer is a violation, whether or not the slot has a new call.
func TestDuplicateReply(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		far := w.Host("mem1", there)
		server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
			case *rdma.ConnectRequest:
				ctx.Respond(&rdma.Accept{PrivateData: wire.Hello{Version: 1, Calls: 2}.Bytes()})
			case *rdma.Received: // the second call of the slot, too, gets the answer to the first
				ctx.Respond(rdma.NewSend(frame(wire.Header{Type: wire.FrameReply, Call: wire.NewCallID(0, 1)}, "first")))
			}
		}, far.OnLoop()))
		w.Wait()
		client, err := Dial(w.T().Context(), w.Runtime(), there+":7471")
		if err != nil {
			w.T().Fatal(err)
		}
		if got, err := CallRaw(w.T().Context(), client, echo, nil, nil); err != nil || string(got) != "first" {
			w.T().Error(got, err)
		}
		_, err = CallRaw(w.T().Context(), client, echo, nil, nil)
		want(w.T(), err, unix.EPROTO, FateDelivered)
		client.Close()
		w.System().Root.Stop(server)
	})
}

func TestForeignServers(t *testing.T) {
	for name, c := range map[string]struct {
		answer rdma.Command
		is     error
	}{
		"no hello":                 {&rdma.Accept{}, ErrForeignPeer},
		"another protocol":         {&rdma.Accept{PrivateData: []byte("HTTP/1.1 200")}, ErrForeignPeer},
		"another version":          {&rdma.Accept{PrivateData: wire.Hello{Version: 9, Calls: 1}.Bytes()}, ErrVersion},
		"it rejects us as too new": {&rdma.Reject{PrivateData: wire.Hello{Version: 9, Calls: 1}.Bytes()}, ErrVersion},
		"it drains":                {&rdma.Reject{PrivateData: wire.Hello{Version: 1}.Bytes()}, ErrDraining},
		"a stranger's no":          {&rdma.Reject{PrivateData: []byte("no")}, unix.ECONNREFUSED},
	} {
		t.Run(name, func(t *testing.T) {
			actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
				far := w.Host("mem1", there)
				server := w.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch ctx.Message().(type) {
					case *actor.Started:
						ctx.Send(far.CreateID(ctx.Self(), rdma.IDConfig{}), &rdma.Serve{Addr: there + ":7471"})
					case *rdma.ConnectRequest:
						ctx.Respond(c.answer)
					}
				}, far.OnLoop()))
				w.Wait()
				if _, err := Dial(w.T().Context(), w.Runtime(), there+":7471"); !errors.Is(err, c.is) {
					w.T().Errorf("%v, want %v", err, c.is)
				}
				w.System().Root.Stop(server)
			})
		})
	}
}
