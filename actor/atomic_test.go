package actor

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// rwa are the rights of a peer to memory with integers.
const rwa = rw | RemoteAtomic

// hasAtomics reports whether a connection's device should have atomic operations: InfiniBand has,
// iWARP has not.
func (m mate) hasAtomics() bool {
	m.client.tb.Helper()
	var has bool
	m.client.send(m.c, &Call{Fn: func(id *cmid.ID) error {
		has = id.Flavor()&states.IWARP == 0
		if id.Device().Attr().Atomics != has {
			m.client.tb.Errorf("Attr.Atomics is not %v", has)
		}
		return nil
	}})
	next[*Done](m.client)
	return has
}

// integer returns the integer at off in the server's memory m.
func integer(p pair, m *Memory, off int) uint64 {
	return binary.NativeEndian.Uint64(contents(p.server, p.s, m)[off:])
}

// Devices without atomic operations refuse them at no cost. On others they have the specified
// effect, in order.
func TestAtomics(t *testing.T) {
	onEveryDevice(t, func(t testing.TB, p mate) {
		near := memory(p.client, p.c, 64, 0)
		if !p.hasAtomics() {
			key := grant(p.server, p.s, memory(p.server, p.s, 64, rw))
			key.Rights |= RemoteAtomic
			for _, cmd := range []Command{
				&FetchAdd{Memory: near, Key: key, Add: 1}, &CompareSwap{Memory: near, Key: key, Swap: 1},
				&AllocMemory{Bytes: 8, Access: RemoteAtomic},
			} {
				p.client.send(p.c, cmd)
				f, _ := next[Failure](p.client)
				if f.Failed() != cmd || !errors.Is(f, cmid.ErrNotSupported) || !errors.Is(f, unix.EOPNOTSUPP) || !errors.Is(f, verbs.ErrNotSupported) {
					t.Errorf("%T: %v, want ErrNotSupported", cmd, f)
				}
			}
			p.client.send(p.c, &Read{Key: key, Memory: near, Length: 8})
			next[*ReadDone](p.client)
			return
		}
		far := memory(p.server, p.s, 64, rwa)
		wire, err := grant(p.server, p.s, far).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var key RemoteKey
		if err := key.UnmarshalBinary(wire); err != nil || key.Rights != rwa {
			t.Fatalf("the key is %v, %v", key, err)
		}
		add := &FetchAdd{Memory: near, At: 16, Key: key, Offset: 8, Add: 5}
		for _, x := range []struct {
			cmd        Command
			old, after uint64
		}{
			{add, 0, 5},
			{add, 5, 10}, // repeated
			{&CompareSwap{Memory: near, At: 16, Key: key, Offset: 8, Compare: 5, Swap: 1}, 10, 10},
			{&CompareSwap{Memory: near, At: 16, Key: key, Offset: 8, Compare: 10, Swap: 1<<64 - 1}, 10, 1<<64 - 1},
			{&FetchAdd{Memory: near, At: 16, Key: key, Offset: 8, Add: 3, Fence: true}, 1<<64 - 1, 2},
		} {
			p.client.send(p.c, x.cmd)
			done, from := next[*AtomicDone](p.client)
			if done.Command != x.cmd || done.Old != x.old || !from.Equal(p.c) {
				t.Errorf("%T is answered %v, want that it has found %d", x.cmd, done, x.old)
			}
			if got := integer(p.pair, far, 8); got != x.after {
				t.Errorf("%T leaves %d, want %d", x.cmd, got, x.after)
			}
			if got := binary.NativeEndian.Uint64(contents(p.client, p.c, near)[16:]); got != x.old {
				t.Errorf("%T has brought %d, want %d", x.cmd, got, x.old)
			}
		}
		if integer(p.pair, far, 0) != 0 || integer(p.pair, far, 16) != 0 {
			t.Error("the integers beside it have changed")
		}
		p.client.send(p.c, add)
		p.client.send(p.c, NewSend([]byte("added")))
		if g := p.server.any(); g.data != "added" {
			t.Fatalf("the server got %v", g)
		}
		if got := integer(p.pair, far, 8); got != 7 {
			t.Errorf("when the message behind an addition comes %d is there, want 7", got)
		}
		next[*AtomicDone](p.client)
	})
}

// A client and a server each operate on the other's memory, with more operations than a send queue
// has room for. They add up.
func TestAtomicsAddUp(t *testing.T) {
	onEveryDevice(t, func(t testing.TB, p mate) {
		if !p.hasAtomics() {
			return
		}
		const n = 2 * datapath.SendDepth
		back := pair{client: p.server, server: p.client, c: p.s, s: p.c}
		for _, x := range []pair{p.pair, back} {
			far := memory(x.server, x.s, 8, rwa)
			key := grant(x.server, x.s, far)
			near := memory(x.client, x.c, 8*n, 0)
			for i := range n {
				x.client.send(x.c, &FetchAdd{Memory: near, At: 8 * i, Key: key, Add: 1})
			}
			var seen []uint64
			for range n {
				done, _ := next[*AtomicDone](x.client)
				seen = append(seen, done.Old)
			}
			if !slices.IsSorted(seen) || seen[0] != 0 || seen[n-1] != n-1 || integer(x, far, 0) != n {
				t.Errorf("%d additions have found %v, and left %d", n, seen, integer(x, far, 0))
			}
		}
	})
}

// An operation that is detectably wrong on this side is refused, and costs nothing.
func TestAtomicIsRefused(t *testing.T) {
	onEveryDevice(t, func(t testing.TB, p mate) {
		if !p.hasAtomics() {
			return
		}
		key := grant(p.server, p.s, memory(p.server, p.s, 20, rwa))
		only := grant(p.server, p.s, memory(p.server, p.s, 20, rw))
		near := memory(p.client, p.c, 12, 0)
		for name, x := range map[string]struct {
			cmd  Command
			want error
		}{
			"misaligned":                   {&FetchAdd{Memory: near, Key: key, Offset: 4}, unix.EINVAL},
			"misaligned swap":              {&CompareSwap{Memory: near, Key: key, Offset: 9}, unix.EINVAL},
			"half behind the key":          {&FetchAdd{Memory: near, Key: key, Offset: 16}, unix.EINVAL},
			"before the key":               {&FetchAdd{Memory: near, Key: key, Offset: -8}, unix.EINVAL},
			"half behind the memory":       {&CompareSwap{Memory: near, At: 5, Key: key}, unix.EINVAL},
			"no memory":                    {&FetchAdd{Key: key}, unix.EINVAL},
			"no key":                       {&FetchAdd{Memory: near}, unix.EINVAL},
			"a right that the key has not": {&FetchAdd{Memory: near, Key: only}, unix.EACCES},
			"no right to swap":             {&CompareSwap{Memory: near, Key: only}, unix.EACCES},
		} {
			p.client.send(p.c, x.cmd)
			f, _ := next[*AccessError](p.client)
			if f.Command != x.cmd || !errors.Is(f, x.want) {
				t.Errorf("%s: %v, want %v", name, f, x.want)
			}
		}
		p.client.send(p.c, &FetchAdd{Memory: near, At: 4, Key: key, Offset: 8, Add: 1})
		if done, _ := next[*AtomicDone](p.client); done.Old != 0 {
			t.Errorf("what was refused has changed the integer: %v", done)
		}
	})
}

// A peer that uses a key without the right, or another connection's, loses its connection, and
// changes nothing.
func TestAtomicIsScoped(t *testing.T) {
	for name, bad := range map[string]func(p pair, others RemoteKey) RemoteKey{
		"a right that was made up": func(p pair, _ RemoteKey) RemoteKey {
			key := grant(p.server, p.s, memory(p.server, p.s, 8, rw))
			key.Rights = rwa
			return key
		},
		"another connection's key": func(_ pair, others RemoteKey) RemoteKey { return others },
	} {
		t.Run(name, func(t *testing.T) {
			onEveryDevice(t, func(t testing.TB, p mate) {
				if !p.hasAtomics() {
					return
				}
				honest := memory(p.server, p.s, 8, rwa)
				key := grant(p.server, p.s, honest)
				q := p.another()
				near := memory(q.client, q.c, 8, 0)
				q.client.send(q.c, &FetchAdd{Memory: near, Key: bad(q, key), Add: 1})
				refused := 0
				for _, g := range until[*Closed](q.client) {
					switch m := g.msg.(type) {
					case *AtomicDone:
						t.Errorf("done, although the peer does not allow it: %v", m)
					case *AccessError:
						refused++
						is(t, m, ErrRemoteAccess)
					}
				}
				if refused != 1 {
					t.Errorf("refused %d times", refused)
				}
				until[*Closed](q.server)
				if got := integer(p.pair, honest, 0); got != 0 {
					t.Errorf("the integer of another connection is %d", got)
				}
			})
		})
	}
}

// An operation in progress when the connection ends is answered once, and its memory goes with the
// connection.
func TestAtomicEndsOnce(t *testing.T) {
	inWorld(t, infiniband, func(w *world) {
		p := w.connect(IDConfig{Memory: 1 << 10})
		key := grant(p.server, p.s, memory(p.server, p.s, 8, rwa))
		near := memory(p.client, p.c, 8, 0)
		w.f.Delay(time.Second)
		cmds := []Command{&FetchAdd{Memory: near, Key: key}, &CompareSwap{Memory: near, Key: key}}
		for _, cmd := range cmds {
			p.client.send(p.c, cmd)
		}
		p.client.send(p.c, cmds[0]) // it is under way
		f, _ := next[*AccessError](p.client)
		is(w, f, unix.EINVAL)
		w.f.Delay(0)
		p.client.send(p.c, &DestroyID{})
		answered := 0
		for _, g := range until[*Closed](p.client) {
			if f, ok := g.msg.(*AccessError); ok {
				is(w, f, ErrFlushed)
				answered++
			}
		}
		if answered != len(cmds) {
			w.Errorf("%d operations answered, want %d", answered, len(cmds))
		}
		until[*Closed](p.server)
	})
}

// An Ask for an atomic operation that gives up costs the identifier, as with Read.
func TestAskGivesUpOnAtomics(t *testing.T) {
	for _, swap := range []bool{false, true} {
		inWorld(t, infiniband, func(w *world) {
			p := w.connect(IDConfig{Memory: 1 << 10})
			key := grant(p.server, p.s, memory(p.server, p.s, 8, rwa))
			near := memory(p.client, p.c, 8, 0)
			w.f.Delay(time.Hour)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			var cmd Command = &FetchAdd{Memory: near, Key: key}
			if swap {
				cmd = &CompareSwap{Memory: near, Key: key}
			}
			if _, err := Ask[*AtomicDone](ctx, w.rt, p.c, cmd); !errors.Is(err, context.DeadlineExceeded) {
				w.Errorf("Ask: %v", err)
			}
			w.f.Delay(0)
			if c := until[*Closed](p.client); !errors.Is(c[len(c)-1].msg.(*Closed).Err, context.DeadlineExceeded) {
				w.Errorf("the end: %v", c)
			}
		})
	}
}
