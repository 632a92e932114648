package actor

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// Arbitrary reads and writes, in bursts, by both sides in turn: the memory equals the result of the
// same copies on plain slices.
func TestMemoryFollowsItsShadow(t *testing.T) {
	onEveryDevice(t, func(t testing.TB, p mate) {
		rng := rand.New(rand.NewPCG(seedOf(t.Name()), 1))
		const size = 512
		type side struct {
			p      *probe
			id     *actor.PID
			memory *Memory
			key    RemoteKey // of the other side's
			shadow []byte
		}
		sides := [2]side{{p: p.client, id: p.c}, {p: p.server, id: p.s}}
		for i := range sides {
			s := &sides[i]
			s.memory, s.shadow = memory(s.p, s.id, size, rw), make([]byte, size)
			for j := range s.shadow {
				s.shadow[j] = byte(rng.Uint32())
			}
			fill(s.p, s.id, s.memory, string(s.shadow))
		}
		for i := range sides {
			far := &sides[1-i]
			sides[i].key = grant(far.p, far.id, far.memory)
		}
		for round := range 60 {
			near, far := &sides[round%2], &sides[1-round%2]
			n := rng.IntN(50)
			for range n {
				length := rng.IntN(size / 4)
				at, offset := rng.IntN(size-length+1), rng.IntN(size-length+1)
				here, there := near.shadow[at:at+length], far.shadow[offset:offset+length]
				if rng.IntN(2) == 0 {
					copy(here, there)
					near.p.send(near.id, &Read{Key: near.key, Offset: offset, Memory: near.memory, At: at, Length: length})
				} else {
					copy(there, here)
					near.p.send(near.id, &Write{
						Memory: near.memory, At: at, Length: length, Key: near.key, Offset: offset,
						Fence: true, // it may write the result of an earlier Read
					})
				}
			}
			for range n {
				switch g := near.p.any(); g.msg.(type) {
				case *ReadDone, *WriteDone:
				default:
					t.Fatalf("round %d: %v", round, g)
				}
			}
			near.p.send(near.id, NewSend(nil)) // behind the Writes
			next[*Received](far.p)
		}
		for i := range sides {
			if s := &sides[i]; !bytes.Equal(contents(s.p, s.id, s.memory), s.shadow) {
				t.Errorf("side %d: the memory is not what was copied to it", i)
			}
		}
	})
}
