package actor

import (
	"bytes"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/cmid"
)

// rw is what tests mostly let a peer do.
const rw = RemoteRead | RemoteWrite

// memory makes a connection's owner register memory.
func memory(p *probe, id *actor.PID, n int, access Access) *Memory {
	p.tb.Helper()
	p.send(id, &AllocMemory{Bytes: n, Access: access})
	m, _ := next[*MemoryAllocated](p)
	return m.Memory
}

// grant makes a connection's owner grant memory to the peer.
func grant(p *probe, id *actor.PID, m *Memory) RemoteKey {
	p.tb.Helper()
	p.send(id, &Grant{Memory: m})
	g, _ := next[*Granted](p)
	return g.Key
}

// touch calls fn where the connection's memory may be touched.
func touch(p *probe, id *actor.PID, fn func()) {
	p.tb.Helper()
	p.send(id, &Call{Fn: func(*cmid.ID) error { fn(); return nil }})
	next[*Done](p)
}

// contents returns what memory contains.
func contents(p *probe, id *actor.PID, m *Memory) []byte {
	p.tb.Helper()
	b := make([]byte, m.Len())
	touch(p, id, func() {
		if _, err := m.ReadAt(b, 0); err != nil {
			p.tb.Error(err)
		}
	})
	return b
}

// fill writes text at the beginning of memory.
func fill(p *probe, id *actor.PID, m *Memory, text string) {
	p.tb.Helper()
	touch(p, id, func() {
		if _, err := m.WriteAt([]byte(text), 0); err != nil {
			p.tb.Error(err)
		}
	})
}

// mate is a connection. another makes further ones with the same listener.
type mate struct {
	pair
	another func() pair
}

// onEveryDevice runs test with a connection on each kind of device, in virtual time on the twin's.
func onEveryDevice(t *testing.T, test func(t testing.TB, p mate)) {
	t.Helper()
	begin := func(t testing.TB, rt, far *Runtime, addr string) {
		server := newProbe(t, rt.sys, far.OnLoop(), nil)
		_, at := listen(server, far, addr, IDConfig{Memory: 1 << 16})
		another := func() pair { return join(t, rt, server, at, IDConfig{Memory: 1 << 16}) }
		test(t, mate{another(), another})
	}
	onAllDevices(t, func(w *world) { begin(w, w.rt, w.far, there+":7471") })
	t.Run("embedded", func(t *testing.T) {
		rt := openIWARP(t, testSystem(t))
		begin(t, rt, rt, "127.0.0.1:0")
	})
}

// join connects a new client with a listener's owner.
func join(tb testing.TB, rt *Runtime, server *probe, at string, cfg ...IDConfig) pair {
	tb.Helper()
	p := pair{client: newProbe(tb, rt.sys, rt.OnLoop(), nil), server: server}
	p.c = rt.CreateID(p.client.pid, one(cfg))
	p.client.send(p.c, &Dial{Addr: at})
	_, p.s = next[*ConnectRequest](server)
	server.send(p.s, &Accept{})
	next[*Established](server)
	next[*Established](p.client)
	return p
}

// The whole way: memory, a grant that goes to the peer in a message, a Write with a message behind
// it, a Read, the grant taken back.
func TestReadAndWrite(t *testing.T) {
	onEveryDevice(t, func(t testing.TB, p mate) {
		far := memory(p.server, p.s, 4096, rw)
		wire, err := grant(p.server, p.s, far).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		p.server.send(p.s, NewSend(wire))
		var key RemoteKey
		if err := key.UnmarshalBinary([]byte(p.client.any().data)); err != nil || key.Length != 4096 || key.Rights != rw {
			t.Fatalf("the key that came is %v, %v", key, err)
		}
		near := memory(p.client, p.c, 256, 0)
		fill(p.client, p.c, near, "hello, far memory")
		write := &Write{Memory: near, At: 7, Length: 10, Key: key, Offset: 4000}
		p.client.send(p.c, write)
		p.client.send(p.c, NewSend([]byte("written")))
		if g := p.server.any(); g.data != "written" {
			t.Fatalf("the server got %v", g)
		}
		if b := contents(p.server, p.s, far); string(b[4000:4010]) != "far memory" || bytes.Trim(b, "\x00")[0] != 'f' {
			t.Errorf("when the message behind a Write comes the bytes are %q", b[4000:4010])
		}
		if done, from := next[*WriteDone](p.client); done.Command != write || !from.Equal(p.c) {
			t.Errorf("answered %v", done)
		}
		read := &Read{Key: key, Offset: 4000, Memory: near, At: 100, Length: 10}
		for range 2 { // repeated
			p.client.send(p.c, read)
			if done, _ := next[*ReadDone](p.client); done.Command != read {
				t.Errorf("answered %v", done)
			}
		}
		if b := contents(p.client, p.c, near); string(b[:17]) != "hello, far memory" || string(b[100:110]) != "far memory" {
			t.Errorf("read %q", b[100:110])
		}
		p.client.send(p.c, &Read{Length: 0})
		p.client.send(p.c, &Write{Length: 0})
		next[*ReadDone](p.client)
		next[*WriteDone](p.client)

		p.server.send(p.s, &Revoke{Memory: far})
		next[*Revoked](p.server)
		if b := contents(p.server, p.s, far); string(b[4000:4010]) != "far memory" {
			t.Errorf("after Revoke the memory holds %q", b[4000:4010])
		}
		if again := grant(p.server, p.s, far); again.RKey == key.RKey && again.Addr == key.Addr {
			t.Error("what is granted again has the key that was taken back")
		}
		p.server.send(p.s, &FreeMemory{Memory: far})
		next[*Done](p.server)
		p.client.send(p.c, &Close{})
		if c := until[*Closed](p.client); c[len(c)-1].msg.(*Closed).Err != nil {
			t.Errorf("the end: %v", c)
		}
		until[*Closed](p.server)
	})
}

// An operation that is detectably wrong on this side is refused, and costs nothing.
func TestAccessIsRefused(t *testing.T) {
	onEveryDevice(t, func(t testing.TB, p mate) {
		far := memory(p.server, p.s, 100, RemoteRead)
		key := grant(p.server, p.s, far)
		near := memory(p.client, p.c, 50, 0)
		gone := memory(p.client, p.c, 50, 0)
		p.client.send(p.c, &FreeMemory{Memory: gone})
		next[*Done](p.client)
		for name, x := range map[string]struct {
			cmd  Command
			want error
		}{
			"behind the key":                {&Read{Key: key, Offset: 81, Memory: near, Length: 20}, unix.EINVAL},
			"far behind the key":            {&Read{Key: key, Offset: 1 << 40, Memory: near, Length: 20}, unix.EINVAL},
			"before the key":                {&Read{Key: key, Offset: -1, Memory: near, Length: 20}, unix.EINVAL},
			"behind the memory":             {&Read{Key: key, Memory: near, At: 31, Length: 20}, unix.EINVAL},
			"far behind the memory":         {&Read{Key: key, Memory: near, At: 1 << 62, Length: 1 << 62}, unix.EINVAL},
			"before the memory":             {&Read{Key: key, Memory: near, At: -1, Length: 20}, unix.EINVAL},
			"a negative length":             {&Read{Key: key, Memory: near, Length: -1}, unix.EINVAL},
			"no memory":                     {&Read{Key: key, Length: 20}, unix.EINVAL},
			"memory of the peer's handle":   {&Read{Key: key, Memory: far, Length: 20}, unix.EINVAL},
			"memory that was freed":         {&Read{Key: key, Memory: gone, Length: 20}, ErrMemoryGone},
			"no key":                        {&Read{Memory: near, Length: 20}, unix.EINVAL},
			"a right that the key has not":  {&Write{Memory: near, Key: key, Length: 20}, unix.EACCES},
			"free the peer's":               {&FreeMemory{Memory: far}, unix.EINVAL},
			"free nothing":                  {&FreeMemory{}, unix.EINVAL},
			"free it twice":                 {&FreeMemory{Memory: gone}, ErrMemoryGone},
			"grant what is closed to peers": {&Grant{Memory: near}, unix.EACCES},
			"grant nothing":                 {&Grant{}, unix.EINVAL},
			"revoke what is not granted":    {&Revoke{Memory: near}, unix.EINVAL},
			"no bytes":                      {&AllocMemory{}, unix.EINVAL},
			"fewer than none":               {&AllocMemory{Bytes: -1}, unix.EINVAL},
			"more than there can be":        {&AllocMemory{Bytes: 1 << 32}, unix.EINVAL},
			"more than Config.Memory":       {&AllocMemory{Bytes: 1<<16 - 49}, unix.ENOMEM},
			"an access of no meaning":       {&AllocMemory{Bytes: 1, Access: 1 << 7}, unix.EINVAL},
		} {
			p.client.send(p.c, x.cmd)
			f, _ := next[Failure](p.client)
			if f.Failed() != x.cmd || !errors.Is(f, x.want) {
				t.Errorf("%s: %v, want %v", name, f, x.want)
			}
			switch x.cmd.(type) {
			case *Read, *Write:
				if _, ok := f.(*AccessError); !ok {
					t.Errorf("%s is answered with %T", name, f)
				}
			}
		}
		read := &Read{Key: key, Memory: near, Length: 20}
		p.client.send(p.c, read)
		next[*ReadDone](p.client)
		rest := memory(p.client, p.c, 1<<16-50, 0) // freed memory can be allocated again
		p.client.send(p.c, &FreeMemory{Memory: rest})
		next[*Done](p.client)
	})
}

// A peer that uses a key that was never given, was revoked or is another connection's loses its
// connection, with an error that names the reason, and touches nothing. Other connections live on.
func TestAccessIsScoped(t *testing.T) {
	for name, bad := range map[string]func(p pair, far *Memory, others RemoteKey) RemoteKey{
		"a key of nobody": func(p pair, far *Memory, _ RemoteKey) RemoteKey {
			key := grant(p.server, p.s, far)
			key.RKey ^= 0x5a5a5a00
			return key
		},
		"another connection's key": func(_ pair, _ *Memory, others RemoteKey) RemoteKey { return others },
		"a key that was revoked": func(p pair, far *Memory, _ RemoteKey) RemoteKey {
			key := grant(p.server, p.s, far)
			p.server.send(p.s, &Revoke{Memory: far})
			next[*Revoked](p.server)
			return key
		},
		"a key to memory that was freed": func(p pair, far *Memory, _ RemoteKey) RemoteKey {
			more := memory(p.server, p.s, 64, rw)
			key := grant(p.server, p.s, more)
			p.server.send(p.s, &FreeMemory{Memory: more})
			next[*Done](p.server)
			return key
		},
		"bytes outside": func(p pair, far *Memory, _ RemoteKey) RemoteKey {
			key := grant(p.server, p.s, far)
			key.Addr += uint64(key.Length) - 1
			return key
		},
	} {
		for _, write := range []bool{false, true} {
			kind := map[bool]string{false: "Read: ", true: "Write: "}[write]
			t.Run(kind+name, func(t *testing.T) {
				onEveryDevice(t, func(t testing.TB, p mate) { misuse(t, p, bad, write) })
			})
		}
	}
}

// misuse makes a second client of the same listener misuse a key.
func misuse(t testing.TB, p mate, bad func(pair, *Memory, RemoteKey) RemoteKey, write bool) {
	t.Helper()
	honest := memory(p.server, p.s, 64, rw)
	fill(p.server, p.s, honest, "of the honest client")
	key := grant(p.server, p.s, honest)

	q := p.another()
	far := memory(q.server, q.s, 64, rw)
	fill(q.server, q.s, far, "untouched")
	near := memory(q.client, q.c, 64, 0)
	fill(q.client, q.c, near, "mine")
	stolen := bad(q, far, key)
	var cmd Command = &Read{Key: stolen, Memory: near, Length: 32}
	if write {
		cmd = &Write{Key: stolen, Memory: near, Length: 32}
	}
	q.client.send(q.c, cmd)
	var answers, named int
	for _, g := range until[*Closed](q.client) {
		switch m := g.msg.(type) {
		case *ReadDone:
			t.Error("a Read was done that the peer does not allow")
		case *WriteDone: // on iWARP it has left
			answers++
		case *AccessError:
			answers++
			if errors.Is(m, ErrRemoteAccess) {
				named++
			} else if !errors.Is(m, ErrFlushed) {
				t.Errorf("answered %v", m)
			}
		case *Disconnected:
			if m.Err != nil {
				named++
			}
		case *Closed:
			if m.Err == nil && named == 0 {
				t.Error("nothing says why the connection has ended")
			}
		}
	}
	if answers != 1 {
		t.Errorf("answered %d times", answers)
	}
	until[*Closed](q.server)

	// The other connection does not notice.
	near = memory(p.client, p.c, 64, 0)
	p.client.send(p.c, &Read{Key: key, Memory: near, Length: 64})
	next[*ReadDone](p.client)
	if b := contents(p.client, p.c, near); string(bytes.TrimRight(b, "\x00")) != "of the honest client" {
		t.Errorf("the memory of another connection holds %q", b)
	}
}

// An operation in progress when the connection ends is answered once.
func TestAccessEndsOnce(t *testing.T) {
	for name, end := range map[string]func(p pair){
		"disconnect":           func(p pair) { p.client.send(p.c, &Disconnect{}) },
		"destroy":              func(p pair) { p.client.send(p.c, &DestroyID{}) },
		"the peer disconnects": func(p pair) { p.server.send(p.s, &Disconnect{}) },
		"the actor is stopped": func(p pair) { p.client.sys.Root.Stop(p.c) },
	} {
		t.Run(name, func(t *testing.T) {
			onEveryDevice(t, func(t testing.TB, p mate) {
				key := grant(p.server, p.s, memory(p.server, p.s, 1<<15, rw))
				near := memory(p.client, p.c, 1<<15, 0)
				const n = 3 * datapath.SendDepth
				sent := make(map[Command]int)
				var begin []Command
				for i := range n {
					cmd := Command(&Read{Key: key, Memory: near, Length: 1 << 15})
					if i%2 == 0 {
						cmd = &Write{Key: key, Memory: near, Length: 1 << 15}
					}
					sent[cmd] = 0
					begin = append(begin, cmd)
				}
				for i, cmd := range begin {
					if i == n/2 {
						end(p.pair)
					}
					p.client.send(p.c, cmd)
				}
				// Commands that came too late are dead letters: these do not name the command, and
				// may overtake Closed.
				dead, early := 0, 0
				for _, g := range until[*Closed](p.client) {
					switch m := g.msg.(type) {
					case *actor.DeadLetterResponse:
						early++
					case *ReadDone:
						sent[m.Command]++
					case *WriteDone:
						sent[m.Command]++
					case Failure:
						sent[m.Failed()]++ // also of Disconnect
					}
				}
				until[*Closed](p.server)
				for _, cmd := range begin {
					switch sent[cmd] {
					case 0:
						if dead++; dead > early {
							next[*actor.DeadLetterResponse](p.client)
						}
					case 1:
					default:
						t.Errorf("a command was answered %d times", sent[cmd])
					}
				}
				if dead == n {
					t.Error("nothing was begun")
				}
			})
		})
	}
}

// An operation before Established is refused, and that costs nothing: the same value may be sent
// again, and its memory is as free as before.
func TestAccessBeforeEstablished(t *testing.T) {
	early := func(t testing.TB, rt, far *Runtime, addr string) {
		server := newProbe(t, rt.sys, far.OnLoop(), nil)
		_, at := listen(server, far, addr, IDConfig{Memory: 1 << 16})
		client := newProbe(t, rt.sys, rt.OnLoop(), nil)
		c := rt.CreateID(client.pid, IDConfig{Memory: 1 << 16})
		client.send(c, &Dial{Addr: at})
		_, s := next[*ConnectRequest](server)
		near, used := memory(client, c, 64, 0), memory(client, c, 64, 0)
		// a key that this side has no objections to
		write := &Write{Memory: near, Length: 5, Key: RemoteKey{Length: 64, Rights: rw}}
		read := &Read{Memory: used, Length: 5, Key: write.Key}
		refused := func(cmd Command) {
			t.Helper()
			for range 3 {
				client.send(c, cmd)
				if e, _ := next[*AccessError](client); !errors.Is(e, unix.ENOTCONN) {
					t.Errorf("before Established: %v, want ENOTCONN", e)
				}
			}
		}
		refused(write)
		refused(read)
		client.send(c, &FreeMemory{Memory: used})
		next[*Done](client)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		fill(client, c, near, "early")
		write.Key = grant(server, s, memory(server, s, 64, rw))
		client.send(c, write)
		next[*WriteDone](client)
		client.send(c, &FreeMemory{Memory: near})
		next[*Done](client)
	}
	onAllDevices(t, func(w *world) { early(w, w.rt, w.far, there+":7471") })
	t.Run("embedded", func(t *testing.T) {
		rt := openIWARP(t, testSystem(t))
		early(t, rt, rt, "127.0.0.1:0")
	})
}
