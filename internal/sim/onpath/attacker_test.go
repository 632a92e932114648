package onpath

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"go.uber.org/goleak"

	"github.com/rdmactor/rdmactor/internal/sim/network"
	"github.com/rdmactor/rdmactor/iwarp/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// send is a Send's frame.
func send(text string) []byte {
	f := wire.FPDU{ULPDU: append(make([]byte, wire.UntaggedLen), text...)}
	f.ULPDU[1] = 0x43
	f.CRC = f.Checksum()
	return wire.AppendFPDU(nil, &f)
}

// TestAttacker: frames arrive whole, wherever they are cut, and each act does what it says.
func TestAttacker(t *testing.T) {
	setup := append(make([]byte, 19), 2, 'h', 'i')
	one, two, three := send("first"), send("second one"), send("third")
	all := bytes.Join([][]byte{setup, one, two, three}, nil)
	for act, want := range map[Act][][]byte{
		Nothing: {setup, one, two, three},
		Drop:    {setup, one, three},
		Repeat:  {setup, one, two, two, three},
		Swap:    {setup, one, three, two},
		Replay:  {setup, one, send("first"), three},
		Strip:   {make([]byte, 19), {2, 0, 0}, one, two, three},
	} {
		for step := 1; step < len(all); step += 7 {
			a := &Attacker{Rand: rand.New(rand.NewPCG(1, 1))}
			skip := 1
			if act == Strip {
				skip = 0
			}
			a.Arm(act, skip, func(network.Flow) bool { return true })
			var got []byte
			for rest := all; len(rest) > 0; {
				n := min(step, len(rest))
				got = append(got, a.Pass(network.Flow{}, rest[:n])...)
				rest = rest[n:]
			}
			got = append(got, a.End(network.Flow{})...)
			if !bytes.Equal(got, bytes.Join(want, nil)) {
				t.Errorf("act %d, %d bytes at once:\n%q, want\n%q", act, step, got, want)
			}
		}
	}
	a := &Attacker{Rand: rand.New(rand.NewPCG(1, 1))}
	f, _, err := wire.ConsumeFPDU(a.flip(bytes.Clone(two)))
	if err != nil || f.CRC != f.Checksum() || bytes.HasSuffix(f.ULPDU, []byte("second one")) && bytes.Equal(f.ULPDU, two[2:2+len(f.ULPDU)]) {
		t.Errorf("a flipped frame: %+v, %v", f, err)
	}
}
