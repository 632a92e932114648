package onpath

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/internal/sim/network"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// send returns a Send's frame.
func send(text string) []byte { return segment(text, 0x40, 0) }

// segment returns a part of a Send.
func segment(text string, last byte, offset byte) []byte {
	f := wire.FPDU{ULPDU: append(make([]byte, wire.UntaggedLen), text...)}
	f.ULPDU[0], f.ULPDU[1], f.ULPDU[wire.UntaggedLen-1] = last, 0x43, offset
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}

func any1(network.Flow) bool { return true }

func attacker() *Attacker { return &Attacker{Rand: rand.New(rand.NewPCG(1, 1))} }

var (
	setup = append(make([]byte, 19), 2, 'h', 'i')
	hello = append(append(make([]byte, 19), 13, 0x7e, 0xda, 4, 1, 0, 1, 7, 0), 0, 0, 0, 0, 'x')
	ann   = network.Flow{Conn: 1, From: netip.MustParseAddrPort("10.0.0.1:1"), To: netip.MustParseAddrPort("10.0.0.2:2")}
	bob   = network.Flow{Conn: 2, From: netip.MustParseAddrPort("10.0.0.1:3"), To: netip.MustParseAddrPort("10.0.0.2:2")}
)

// TestAttacker: frames arrive complete, wherever they are cut, and each act has its effect.
func TestAttacker(t *testing.T) {
	zero, one, two, three := send("before"), send("between"), send("second one"), send("third")
	for act, want := range map[Act][][]byte{
		Nothing: {setup, zero, one, two, three},
		Drop:    {setup, zero, two, three},
		Repeat:  {setup, zero, one, one, two, three},
		Swap:    {setup, zero, two, one, three},
		Replay:  {setup, zero, one, two, send("second one")},
		Strip:   {make([]byte, 19), {2, 0, 0}, zero, one, two, three},
	} {
		all := bytes.Join([][]byte{setup, zero, one, two, three}, nil)
		for step := 1; step < len(all); step += 7 {
			a := attacker()
			skip := 1
			if act == Strip || act == Replay { // there is one place
				skip = 0
			}
			a.Arm(act, skip, any1)
			if got := passed(a, ann, all, step); !bytes.Equal(got, bytes.Join(want, nil)) {
				t.Errorf("act %d, %d bytes at once:\n%q, want\n%q", act, step, got, want)
			}
		}
	}
	a := attacker()
	f, _, err := wire.ConsumeFPDU(a.flipInFrame(bytes.Clone(two)))
	if err != nil || f.CRC != f.Checksum() || bytes.Equal(f.ULPDU, two[2:2+len(f.ULPDU)]) {
		t.Errorf("a flipped frame: %+v, %v", f, err)
	}
	for range 50 {
		f, _, err := wire.ConsumeFPDU(a.cutPayload(two))
		if whole := int(two[1]); err != nil || len(f.ULPDU) >= whole || f.CRC != f.Checksum() || !bytes.HasPrefix(two[2:], f.ULPDU) || len(f.ULPDU) < wire.UntaggedLen {
			t.Errorf("a cut frame: %+v, %v", f, err)
		}
	}
	if empty := send(""); !bytes.Equal(a.cutPayload(empty), empty) {
		t.Error("a frame that carries nothing is changed")
	}
}

// passed returns the bytes that arrive if all is passed in pieces.
func passed(a *Attacker, f network.Flow, all []byte, step int) (got []byte) {
	for rest := all; len(rest) > 0; {
		n := min(step, len(rest))
		got = append(got, a.Pass(f, rest[:n])...)
		rest = rest[n:]
	}
	return append(got, a.End(f)...)
}

// TestGraft replaces a message by the one with the same number of another connection, and leaves
// parts of longer messages unchanged.
func TestGraft(t *testing.T) {
	request := append([]byte("MPA ID Req Frame\x00\x02\x00"), 0)
	sent := func(who string) []byte {
		return bytes.Join([][]byte{
			request, send(who + " 0"), segment(who+" 1", 0, 0), segment("more", 0x40, 3), send(who + " 2"), send(who + " 3"),
		}, nil)
	}
	a := attacker()
	passed(a, ann, sent("ann"), 1000)
	a.Arm(Graft, 1, any1)
	want := bytes.Replace(sent("bob"), send("bob 3"), send("ann 3"), 1)
	if got := passed(a, bob, sent("bob"), 1000); !bytes.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
}

// TestSetUp changes private data only: a bit of it, or its security fields.
func TestSetUp(t *testing.T) {
	acted := map[Act]int{}
	for _, act := range []Act{Strip, Flip} {
		for range 50 {
			a := attacker()
			a.Rand = rand.New(rand.NewPCG(uint64(acted[act]), 2))
			a.Acted = func(_ network.Flow, act Act) { acted[act]++ }
			a.Arm(act, 0, any1)
			got := a.Pass(ann, hello)
			if bytes.Equal(got, hello) || !bytes.Equal(got[:20], hello[:20]) || len(got) != len(hello) {
				t.Errorf("act %d: %q", act, got)
			}
			if act == Strip && got[26] != 0 {
				t.Errorf("features %x are left", got[26])
			}
		}
	}
	if acted[Strip] != 50 || acted[Flip] != 50 {
		t.Errorf("%v", acted)
	}
}

// TestRelay relays a connection to a listener on another machine that was dialled before.
func TestRelay(t *testing.T) {
	a := attacker()
	var acted []network.Flow
	a.Acted = func(f network.Flow, _ Act) { acted = append(acted, f) }
	a.Arm(Relay, 0, any1)
	to := netip.MustParseAddrPort
	for _, c := range []struct{ from, dials, gets string }{
		{"10.0.0.1:9", "10.0.0.2:7", "10.0.0.2:7"}, // no other is known
		{"10.0.0.2:9", "10.0.0.3:7", "10.0.0.3:7"}, // except one of the same machine
		{"10.0.0.1:9", "10.0.0.2:7", "10.0.0.3:7"},
		{"10.0.0.1:9", "10.0.0.2:7", "10.0.0.2:7"}, // once
	} {
		if got := a.Meet(network.Flow{From: to(c.from), To: to(c.dials)}); got != to(c.gets) {
			t.Errorf("%v is made to %v", c, got)
		}
	}
	if len(acted) != 2 || acted[0].To != to("10.0.0.2:7") || acted[1].To != to("10.0.0.3:7") {
		t.Errorf("it has acted on %v", acted)
	}
}

// TestMessages: each act on messages without frames has its effect.
func TestMessages(t *testing.T) {
	for act, want := range map[Act][]string{
		Nothing: {"0", "1", "two", "three"},
		Replay:  {"0", "1", "two", "two"},
		Graft:   {"0", "1", "TWO", "three"},
	} {
		a := attacker()
		for kind, m := range []string{"a request", "", "0", "1", "TWO", "THREE"} {
			a.Message(bob, min(Message(kind), Send), []byte(m))
		}
		a.Arm(act, 0, func(f network.Flow) bool { return f == ann })
		a.Message(ann, Request, []byte("a request"))
		for i, m := range []string{"0", "1", "two", "three"} {
			if got := a.Message(ann, Send, []byte(m)); string(got) != want[i] {
				t.Errorf("act %d: message %d is %q, want %q", act, i, got, want[i])
			}
		}
	}
	for _, c := range []struct {
		act  Act
		kind Message
	}{{Flip, Request}, {Strip, Reply}, {Flip, Answer}, {Flip, Send}, {Cut, Send}} {
		a := attacker()
		a.Arm(c.act, 0, any1)
		if got := a.Message(ann, c.kind, []byte("a hello of somebody's")); string(got) == "a hello of somebody's" {
			t.Errorf("act %d leaves %d as it is", c.act, c.kind)
		}
	}
}
