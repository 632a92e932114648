package workload

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/rdmanet"
)

// runDialer runs the program of a machine that dials.
func (w *streams) runDialer(p *world.Process, machine int) {
	me := w.newCrew(p)
	if me == nil {
		return
	}
	d := rdmanet.NewDialer(me.rt, w.cfg)
	for _, x := range w.all {
		if x == nil || x.o.machine != machine {
			continue
		}
		me.performAt(x.o.at, &x.begun, func() {
			if c := w.dialConn(p, d, x); c != nil {
				x.startSide(me, 0, c)
			}
		})
	}
	me.waitUntil(20*time.Millisecond, me.isIdle)
	w.awaitReleased(p, me.rt)
	w.Programs[machine].Finished = true
}

// dialConn dials, and sends the stream's number. nil: it has failed.
func (w *streams) dialConn(p *world.Process, d *rdmanet.Dialer, x *stream) *rdmanet.Conn {
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		c, err := d.Dial(ctx, w.Addr(0, 0))
		cancel()
		if err == nil {
			var b [greeting]byte
			binary.LittleEndian.PutUint64(b[:], uint64(x.n))
			if _, err = c.Write(b[:]); err == nil {
				return c.(*rdmanet.Conn)
			}
			_ = c.Close()
		}
		w.judgeDialError(x, err)
		p.Sleep(100 * time.Millisecond)
	}
	return nil
}

// judgeDialError judges the error of a dial, or of the greeting.
func (w *streams) judgeDialError(x *stream, err error) {
	op, ok := errors.AsType[*net.OpError](err)
	errno, known := errors.AsType[unix.Errno](err)
	w.World.Trace("%s: stream %d is not connected: %v", w.Name, x.n, errno)
	if !ok || !known {
		w.failWorld("%s: %v, want a net.OpError with an errno in it", x.name, err)
		return
	}
	if op.Op == "write" && !w.Disturbed(0, x.o.machine) && w.closes == 0 {
		w.failWorld("%s: its first Write: %v", x.name, err)
	}
}

// runListener runs the program that listens.
func (w *streams) runListener(p *world.Process) {
	me := w.newCrew(p)
	if me == nil {
		return
	}
	for !w.dialersDone() {
		l, err := rdmanet.Listen(p.Context(), me.rt, w.Addr(0, 0), w.cfg)
		if err != nil {
			p.Sleep(50 * time.Millisecond)
			continue
		}
		over := false
		me.startGoroutine(func() {
			w.acceptConns(me, l.(*rdmanet.Listener))
			over = true
		})
		me.waitUntil(25*time.Millisecond, func() bool { return over || w.dialersDone() || w.closeNow() })
		if !w.dialersDone() {
			w.closes++
		}
		begin := w.World.Now()
		_ = l.Close()
		if took := w.World.Now() - begin; took > 2*time.Second && !w.Disturbed(0) {
			w.failWorld("the listener takes %v to Close, want a second", took)
		}
		me.waitUntil(time.Millisecond, func() bool { return over })
	}
	me.waitUntil(20*time.Millisecond, me.isIdle)
	w.awaitReleased(p, me.rt)
	w.Programs[0].Finished = true
}

// closeNow reports whether the next operation that closes the listener is due.
func (w *streams) closeNow() bool {
	due := 0
	for _, op := range w.ops {
		if o, ok := op.(*listenOp); ok && beginning+o.at <= w.World.Now() {
			due++
		}
	}
	return due > w.closes
}

// acceptConns accepts connections until the listener is closed.
func (w *streams) acceptConns(me *crew, l *rdmanet.Listener) {
	for {
		if w.slow > 0 {
			_ = l.SetDeadline(time.Now().Add(20 * w.slow))
		}
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, os.ErrDeadlineExceeded) && w.slow > 0:
			continue
		case err != nil:
			if !w.Disturbed(0) {
				w.failWorld("Accept: %v", err)
			}
			return
		}
		me.startGoroutine(func() { w.receiveNumber(me, c.(*rdmanet.Conn)) })
		if w.slow > 0 {
			me.p.Sleep(w.slow)
		}
	}
}

// receiveNumber receives the stream's number.
func (w *streams) receiveNumber(me *crew, c *rdmanet.Conn) {
	var b [greeting]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		_ = c.Close()
		return
	}
	n := binary.LittleEndian.Uint64(b[:])
	if n >= uint64(len(w.all)) || w.all[n] == nil {
		w.failWorld("a stream begins with %x, which nobody has written", b)
		return
	}
	if x := w.all[n]; x.sides[1].c != nil {
		w.failWorld("%s is accepted twice", x.name)
	} else {
		x.startSide(me, 1, c)
	}
}

// newStream creates a stream that is to be dialled.
func (w *streams) newStream(n int, o *streamOp) *stream {
	x := &stream{w: w, n: n, o: o, name: fmt.Sprintf("stream %d of machine %d", n, o.machine)}
	for i := range x.sides {
		s := &x.sides[i]
		s.x, s.n, s.o = x, i, &o.sides[i]
		s.out = w.pipes.Pipe(fmt.Sprintf("%s, what %s writes", x.name, sideNames[i]))
	}
	return x
}
