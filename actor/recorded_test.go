package actor

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// recorded is a line of testdata/version4.txt: a message of one of two peers of that version.
type recorded struct {
	dialler bool
	bytes   []byte
}

func recordedLines(t *testing.T, version int) (lines []recorded) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("testdata/version%d.txt", version))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		b, err := hex.DecodeString(strings.TrimSpace(line[2:]))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, recorded{line[0] == 'D', b})
	}
	return lines
}

// The conversation that was recorded.
const recordedMessages = 20

var (
	recordedLarge   = pattern(100<<10, 1)
	recordedOptions = IDConfig{MaxMessage: 1 << 20, Credits: 8}
)

func recordedListener(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *ConnectRequest:
		ctx.Respond(&Accept{PrivateData: []byte("come in")})
	case *Received:
		ctx.Respond(NewSend(m.Data))
	}
}

func recordedDialler() func(ctx actor.Context) {
	came := 0
	return func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *Established:
			for i := range recordedMessages {
				ctx.Respond(NewSend(fmt.Appendf(nil, "message %d", i)))
			}
		case *Received:
			switch came++; came {
			case recordedMessages:
				ctx.Respond(NewSend(recordedLarge))
			case recordedMessages + 1:
				ctx.Respond(&Close{})
			}
		}
	}
}

// A peer of version 4 that dials this side finds the same behaviour as before there was a version
// 5.
func TestVersion4DialsUs(t *testing.T) { recordedDialsUs(t, 4) }

func recordedDialsUs(t *testing.T, version int) {
	t.Helper()
	lines := recordedLines(t, version)
	onFlavors(t, func(w *world) {
		w.f.Delay(time.Millisecond)
		server, old := w.farProbe(), w.probe()
		server.reactWith(recordedListener)
		w.listen(server, recordedOptions)
		id := w.rt.CreateID(old.pid, IDConfig{Raw: true, MaxMessage: 1 << 20, Credits: 64, Memory: 1 << 20})
		old.send(id, &Dial{Addr: there + ":7471", PrivateData: lines[0].bytes})
		up, _ := next[*Established](old)
		checkHello(t, lines[1].bytes, up.PrivateData)
		(&player{probe: old, id: id}).play(true, lines[2:])
		old.send(id, &Disconnect{})
		checkEnd(t, until[*Closed](server), recordedMessages+1)
	})
}

// A peer of version 4 that we dial finds the same.
func TestWeDialVersion4(t *testing.T) { weDialRecorded(t, 4) }

func weDialRecorded(t *testing.T, version int) {
	t.Helper()
	lines := recordedLines(t, version)
	onFlavors(t, func(w *world) {
		w.f.Delay(time.Millisecond)
		old, client := w.farProbe(), w.probe()
		client.reactWith(recordedDialler())
		w.listen(old, IDConfig{Raw: true, MaxMessage: 1 << 20, Credits: 64, Memory: 1 << 20})
		id := w.rt.CreateID(client.pid, recordedOptions)
		client.send(id, &Dial{Addr: there + ":7471", PrivateData: []byte("let me in")})
		r, s := next[*ConnectRequest](old)
		checkHello(t, lines[0].bytes, r.PrivateData)
		old.send(s, &Accept{PrivateData: lines[1].bytes})
		next[*Established](old)
		p := player{probe: old, id: s}
		p.play(false, lines[2:])
		p.end()
		checkEnd(t, until[*Closed](client), recordedMessages+1)
	})
}

// checkHello holds ours against a recorded one: another version, and what that one reads is
// the same.
func checkHello(t *testing.T, old, b []byte) {
	t.Helper()
	want := bytes.Clone(old)
	want[2] = 5
	if len(b) < len(want) || !bytes.Equal(b[:len(want)], want) {
		t.Errorf("our hello is\n%x, want\n%x", b, want)
	}
}

func checkEnd(t *testing.T, end []got, delivered uint64) {
	t.Helper()
	c := end[len(end)-1].msg.(*Closed)
	if c.Err != nil || c.Delivered != delivered || c.Unsent+c.Unknown != 0 {
		t.Errorf("the end is %v", end[len(end)-1])
	}
	for _, g := range end {
		if d, ok := g.msg.(*Disconnected); ok && d.Err != nil {
			t.Errorf("disconnected because of %v: the peer has ended in order", d.Err)
		}
	}
}

// player is the owner of a raw identifier that plays a recorded peer.
type player struct {
	*probe
	id    *actor.PID
	heard [][]byte // and not looked at
}

// sort keeps the messages among the received values, and returns the last, which is something else.
func (p *player) sort(all []got) any {
	last := len(all) - 1
	for _, g := range all[:last] {
		if _, ok := g.msg.(*Received); !ok {
			p.tb.Fatalf("got %v, want messages", g)
		}
		p.heard = append(p.heard, []byte(g.data))
	}
	return all[last].msg
}

// message returns the next message that is no credit update.
func (p *player) message() []byte {
	p.tb.Helper()
	for {
		if len(p.heard) == 0 {
			g := p.any()
			if _, ok := g.msg.(*Received); !ok {
				p.tb.Fatalf("got %v, want a message", g)
			}
			p.heard = append(p.heard, []byte(g.data))
		}
		b := p.heard[0]
		p.heard = p.heard[1:]
		if wire.Type(b[0]) != wire.TypeCredit {
			return b
		}
	}
}

// play sends the recorded messages of one side, behind those of the other at that time. The
// position of credit updates is each side's own business. Offers are real, and read.
func (p *player) play(dialler bool, lines []recorded) {
	p.tb.Helper()
	p.send(p.id, &AllocMemory{Bytes: len(recordedLarge), Access: RemoteRead})
	near := p.sort(until[*MemoryAllocated](p.probe)).(*MemoryAllocated).Memory
	p.send(p.id, &Grant{Memory: near})
	key := p.sort(until[*Granted](p.probe)).(*Granted).Key
	for i, line := range lines {
		b := bytes.Clone(line.bytes)
		switch {
		case line.dialler == dialler:
			if wire.Type(b[0]) == wire.TypeOffer {
				wire.Offer{Length: uint32(len(recordedLarge)), Key: key.RKey, Addr: key.Addr}.Put(b[wire.HeaderLen:])
			}
			p.send(p.id, NewSend(b))
		case wire.Type(b[0]) != wire.TypeCredit:
			heard := p.message()
			if heard[0] != b[0] || wire.Type(heard[0]) == wire.TypeData && !bytes.Equal(heard[wire.HeaderLen:], b[wire.HeaderLen:]) {
				p.tb.Fatalf("line %d: got %x, want the like of %x", i, heard, b)
			}
			if wire.Type(heard[0]) != wire.TypeOffer {
				continue
			}
			n := binary.BigEndian.Uint32(heard[wire.HeaderLen:])
			p.send(p.id, &Read{Memory: near, Length: int(n), Key: RemoteKey{
				Length: n, RKey: binary.BigEndian.Uint32(heard[wire.HeaderLen+4:]), Addr: binary.BigEndian.Uint64(heard[wire.HeaderLen+8:]), Rights: RemoteRead,
			}})
			p.sort(until[*ReadDone](p.probe))
		}
	}
}

// end expects the end by the other side, and only credit updates before it.
func (p *player) end() {
	p.tb.Helper()
	d := p.sort(until[*Disconnected](p.probe)).(*Disconnected)
	for _, b := range p.heard {
		if wire.Type(b[0]) != wire.TypeCredit {
			p.tb.Errorf("behind the last message came %x", b)
		}
	}
	if d.Err != nil {
		p.tb.Errorf("the end is %v", d.Err)
	}
	until[*Closed](p.probe)
}
