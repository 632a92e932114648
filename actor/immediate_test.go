package actor

import (
	"bytes"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// onImmediates runs test on the devices that have immediates.
func onImmediates(t *testing.T, test func(w *world), opts ...Config) {
	t.Helper()
	t.Run("asks for receives", func(t *testing.T) { inWorld(t, infiniband, test, opts...) })
	t.Run("kernel-like", func(t *testing.T) {
		near, far := &kernelLike{}, &kernelLike{}
		inWorldOfTwo(t, infiniband, near.over, far.over, test, opts...)
	})
}

// noteAll makes p keep clones of its messages, and retain the messages if held is not nil.
func (p *probe) noteAll(held *[]*Received) *[]*Received {
	all := new([]*Received)
	p.reactWith(func(ctx actor.Context) {
		m, ok := ctx.Message().(*Received)
		if !ok {
			return
		}
		*all = append(*all, m.Clone())
		if held != nil {
			*held = append(*held, m.Retain())
		}
	})
	return all
}

// granted is a connection whose client has memory to write from, and a key to memory of its server.
type granted struct {
	pair
	near, far *Memory
	key       RemoteKey
}

func (w *world) granted(n int, cfg ...IDConfig) *granted {
	w.Helper()
	c := one(cfg)
	c.Memory = 2 * n
	g := &granted{pair: w.connect(c)}
	g.far = memory(g.server, g.s, n, rw)
	g.key = grant(g.server, g.s, g.far)
	g.near = memory(g.client, g.c, n, 0)
	return g
}

// post posts, past the framework, a Write with an immediate, of n bytes, from near.
func (w *world) post(id *actor.PID, near *Memory, key RemoteKey, n int) {
	w.Helper()
	w.onLoop(w.rt, func(l *loop) {
		wr := verbs.SendWR{ID: 1<<32 - 1, Op: verbs.WriteWithImm, RemoteAddr: key.Addr, RKey: key.RKey, Imm: 7}
		if n > 0 {
			wr.SGL = []verbs.SGE{{MR: near.mr, Length: uint32(n)}}
		}
		if err := w.conn(l, id).QP.PostSend(&wr); err != nil {
			w.Error(err)
		}
	})
}

// The peer's owner gets length and immediate when the bytes are there, in order with messages, and
// more bytes than a receive holds.
func TestWriteWithImmediate(t *testing.T) {
	onImmediates(t, func(w *world) {
		const n = 300 * kib
		g := w.granted(n)
		all := g.server.noteAll(nil)
		text := bytes.Repeat([]byte("written "), n/8)
		touch(g.client, g.c, func() { copy(g.near.Bytes(), text) })
		g.client.send(g.c, NewSend([]byte("before")))
		g.client.send(g.c, &Write{Memory: g.near, Length: n, Key: g.key, HasImm: true, Imm: 0xdeadbeef})
		g.client.send(g.c, NewSend([]byte("behind")))
		g.client.send(g.c, &Write{Key: g.key, HasImm: true})
		settle()
		if len(*all) != 4 {
			w.Fatalf("came: %v", *all)
		}
		before, written, behind, empty := (*all)[0], (*all)[1], (*all)[2], (*all)[3]
		if before.HasImm || behind.HasImm || string(before.Data) != "before" || string(behind.Data) != "behind" {
			w.Errorf("messages: %v, %v", before, behind)
		}
		if !written.HasImm || written.Imm != 0xdeadbeef || written.Written != n || len(written.Data) != 0 {
			w.Errorf("a Write with an immediate: %v", written)
		}
		if !empty.HasImm || empty.Imm != 0 || empty.Written != 0 {
			w.Errorf("one of no bytes: %v", empty)
		}
		w.onLoop(w.far, func(*loop) {
			if !bytes.Equal(g.far.Bytes(), text) {
				w.Error("the bytes are not there")
			}
		})
		next[*WriteDone](g.client)
		next[*WriteDone](g.client)
		g.client.send(g.c, &Close{})
		end := until[*Closed](g.client)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != 4 || c.Unsent+c.Unknown != 0 {
			w.Errorf("the end: %+v", c)
		}
		until[*Closed](g.server)
	})
}

// Immediates wait for credits as messages do, and leave when the owner has consumed earlier
// messages. Operations posted behind them wait with them. Close waits for all.
func TestImmediatesTakeCredits(t *testing.T) {
	onImmediates(t, func(w *world) {
		const all = 200
		g := w.granted(64, IDConfig{MaxMessage: 1 << 10, Credits: 2})
		var held []*Received
		g.server.noteAll(&held)
		for i := range all {
			g.client.send(g.c, &Write{Memory: g.near, Length: 8, Key: g.key, HasImm: true, Imm: uint32(i)})
		}
		g.client.send(g.c, &Read{Memory: g.near, Length: 8, Key: g.key})
		time.Sleep(time.Hour)
		settle()
		if len(held) != 2 {
			w.Fatalf("%d immediates came with 2 credits", len(held))
		}
		came := g.server.noteAll(nil)
		for _, m := range held {
			m.Release()
		}
		g.client.send(g.c, &Close{})
		end := until[*Closed](g.client)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != all {
			w.Errorf("the end: %+v", c)
		}
		until[*Closed](g.server)
		if len(*came) != all-2 {
			w.Fatalf("%d of %d came", len(*came), all-2)
		}
		for i, m := range *came {
			if m.Imm != uint32(i+2) {
				w.Fatalf("immediate %d is %d", i+2, m.Imm)
			}
		}
	})
}

// A peer without a grant loses its connection with an immediate, and no other is affected: whatever
// length it claims to have written, in whatever mode, and if it takes the connection as open before
// the owner does.
func TestImmediateWithoutGrant(t *testing.T) {
	onImmediates(t, func(w *world) {
		for name, cfg := range map[string]IDConfig{"messages": {}, "raw": {Raw: true}} {
			good := w.granted(64)
			cfg.Memory = 512 * kib
			p := join(w, w.rt, good.server, there+":7471", cfg)
			w.post(p.c, nil, RemoteKey{}, 0)
			for _, x := range until[*Closed](good.server) {
				if c, ok := x.msg.(*Closed); ok {
					is(w, c.Err, unix.EPROTO)
				} else if m, ok := x.msg.(*Received); ok {
					w.Errorf("%s: %v", name, m)
				}
			}
			until[*Closed](p.client)
			good.client.send(good.c, &Write{Memory: good.near, Length: 8, Key: good.key, HasImm: true, Imm: 1})
			next[*Received](good.server)
			good.client.send(good.c, &DestroyID{})
			until[*Closed](good.client)
			until[*Closed](good.server)
			good.server.send(good.listener, &DestroyID{})
			until[*Closed](good.server)
		}
	})
}

// A flood of immediates without credits is a violation, as one of messages is.
func TestImmediatesWithoutCredits(t *testing.T) {
	onImmediates(t, func(w *world) {
		g := w.granted(64, IDConfig{MaxMessage: 1 << 10, Credits: 2})
		g.server.reactWith(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*Received); ok {
				keep(w, m)
			}
		})
		for range 3 {
			w.post(g.c, g.near, g.key, 8)
		}
		end := until[*Closed](g.server)
		is(w, end[len(end)-1].msg.(*Closed).Err, unix.EPROTO)
		until[*Closed](g.client)
	})
}

// A foreign peer's immediates reach a raw owner that has granted it memory, and no more of them at
// a time than it has receives for.
func TestForeignImmediates(t *testing.T) {
	onImmediates(t, func(w *world) {
		server := w.farProbe()
		raw := IDConfig{Raw: true, MaxMessage: kib, Credits: 4, Memory: 300 * kib}
		w.listen(server, raw)
		raw.Credits = 32
		g := &granted{pair: join(w, w.rt, server, there+":7471", raw)}
		g.key = grant(g.server, g.s, memory(g.server, g.s, 300*kib, rw))
		g.near = memory(g.client, g.c, 300*kib, 0)
		var held []*Received
		came := g.server.noteAll(&held)
		for range 20 {
			w.post(g.c, g.near, g.key, 300*kib)
		}
		time.Sleep(time.Second)
		settle()
		asks := false
		w.onLoop(w.far, func(l *loop) { asks = w.conn(l, g.s).Attr().AsksForReceives })
		if len(held) != 4 && !asks { // else as many as were posted when the first came
			w.Errorf("%d immediates for 4 receives", len(held))
		}
		for len(held) > 0 {
			m := held[0]
			held = held[1:]
			m.Release()
			time.Sleep(time.Second)
			settle()
		}
		if len(*came) != 20 {
			w.Errorf("%d of 20 came", len(*came))
		}
		for _, m := range *came {
			if !m.HasImm || m.Written != 300*kib || m.Imm != 7 {
				w.Errorf("came: %v", m)
			}
		}
		g.client.send(g.c, &DestroyID{})
		until[*Closed](g.client)
		until[*Closed](g.server)
	})
}

// An operation that is detectably wrong on this side is refused, and costs nothing.
func TestImmediateRefused(t *testing.T) {
	onImmediates(t, func(w *world) {
		g := w.granted(64)
		readOnly := g.key
		readOnly.Rights = RemoteRead
		for _, x := range []struct {
			cmd  *Write
			want error
		}{
			{&Write{HasImm: true}, unix.EACCES},
			{&Write{Key: readOnly, HasImm: true}, unix.EACCES},
			{&Write{Memory: g.near, Length: 65, Key: g.key, HasImm: true}, unix.EINVAL},
		} {
			g.client.send(g.c, x.cmd)
			f, _ := next[*AccessError](g.client)
			is(w, f, x.want)
		}
		g.client.send(g.c, &Write{Memory: g.near, Length: 64, Key: g.key, HasImm: true})
		next[*Received](g.server)
	})
	inWorld(t, states.IWARP, func(w *world) {
		g := w.granted(64)
		g.client.send(g.c, &Write{Memory: g.near, Length: 64, Key: g.key, HasImm: true})
		f, _ := next[*AccessError](g.client)
		is(w, f, cmid.ErrNotSupported)
		is(w, f, unix.EOPNOTSUPP)
	})
}
