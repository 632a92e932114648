package oracle

import (
	"bytes"
	"testing"
)

func TestGrants(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(m *Memory)
	}{
		{"a write that may be there", "", func(m *Memory) {
			m.Write(0, []byte{1, 2})
			m.Look(s, []byte{0, 0, 0, 0})
			m.Look(s, []byte{1, 0, 0, 0}) // in the middle of it
			m.Look(s, []byte{1, 2, 0, 0})
		}},
		{"nobody has written that", "byte 2 is 0x07", func(m *Memory) {
			m.Write(0, []byte{1, 2})
			m.Look(s, []byte{1, 2, 7, 0})
		}},
		{"a write that has arrived", "", func(m *Memory) {
			m.Write(0, []byte{1, 1})
			w := m.Write(1, []byte{2, 2})
			m.Write(2, []byte{3})
			w.Arrived()
			m.Look(s, []byte{1, 2, 2, 0})
			m.Look(s, []byte{1, 2, 3, 0})
		}},
		{"a write that has arrived and is not there", "byte 0 is 0x00", func(m *Memory) {
			m.Write(0, []byte{1}).Arrived()
			m.Look(s, []byte{0, 0, 0, 0})
		}},
		{"a write that was refused", "byte 0 is 0x01", func(m *Memory) {
			m.Write(0, []byte{1}).Refused()
			m.Look(s, []byte{1, 0, 0, 0})
		}},
		{"a write after the grant was revoked", "byte 0 is 0x01", func(m *Memory) {
			m.Revoke()
			m.Write(0, []byte{1})
			m.Look(s, []byte{1, 0, 0, 0})
		}},
		{"a write that arrives after the grant was revoked", "byte 0 is 0x01", func(m *Memory) {
			m.Write(0, []byte{1})
			m.Revoke()
			m.Look(s, []byte{0, 0, 0, 0})
			m.Look(s, []byte{1, 0, 0, 0})
		}},
		{"a write that leaves its bounds", "byte 3 is 0x01", func(m *Memory) {
			m.Write(3, []byte{1, 1})
			m.Look(s, []byte{0, 0, 0, 1})
		}},
		{"a length of its own", "has 3 bytes", func(m *Memory) { m.Look(s, make([]byte, 3)) }},
		{"a read", "", func(m *Memory) {
			m.Write(0, []byte{1, 2, 3, 4}).Arrived()
			r := m.Read(1, 2)
			r.Done(s, []byte{2, 3})
		}},
		{"a read beside a write", "", func(m *Memory) {
			m.Write(0, []byte{1, 1, 1})
			r := m.Read(1, 3)
			m.Write(2, []byte{2, 2})
			r.Done(s, []byte{1, 2, 0})
		}},
		{"a read of what is overwritten meanwhile", "", func(m *Memory) {
			m.Write(0, []byte{1}).Arrived()
			r := m.Read(0, 1)
			m.Write(0, []byte{2}).Arrived()
			r.Done(s, []byte{1})
		}},
		{"a read of what was overwritten before", "byte 0 is read as 0x01", func(m *Memory) {
			m.Write(0, []byte{1}).Arrived()
			m.Write(0, []byte{2}).Arrived()
			m.Read(0, 1).Done(s, []byte{1})
		}},
		{"a read of other bytes", "byte 1 is read as 0x09", func(m *Memory) { m.Read(0, 2).Done(s, []byte{0, 9}) }},
		{"a read of another length", "1 bytes were read, want 2", func(m *Memory) { m.Read(0, 2).Done(s, []byte{0}) }},
		{"a read that failed", "", func(m *Memory) {
			m.Read(0, 2).Failed()
			if len(m.reads) > 0 {
				m.l.Fail("it is still under way")
			}
		}},
		{"a read of what is not granted", "which is not granted", func(m *Memory) {
			m.Revoke()
			m.Read(0, 2).Done(s, []byte{0, 0})
		}},
		{"a read outside", "which is not granted", func(m *Memory) { m.Read(2, 4).Done(s, make([]byte, 4)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Grants{Fail: v.fail}
			m := l.Memory("a's memory", 4)
			m.Grant()
			c.do(m)
			v.want(t, c.want)
		})
	}
}

func TestMemoryKeepsNoSlices(t *testing.T) {
	l := &Grants{Fail: t.Errorf}
	m := l.Memory("a's memory", 4)
	m.Grant()
	p := []byte{1, 2, 3, 4}
	w := m.Write(0, p)
	clear(p)
	w.Arrived()
	m.Look(s, bytes.Clone([]byte{1, 2, 3, 4}))
}

func TestAtomics(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(i *Integer)
		value uint64
		wrong bool
	}{
		{"one after the other", func(i *Integer) { i.Add(1).Done(0); i.Add(2).Done(1) }, 3, false},
		{"at the same time, in any order", func(i *Integer) {
			a, b := i.Add(1), i.Add(2)
			a.Done(2)
			b.Done(0)
		}, 3, false},
		{"an add is lost", func(i *Integer) { i.Add(1).Done(0); i.Add(2).Done(0) }, 2, true},
		{"an add is done twice", func(i *Integer) { i.Add(1).Done(0) }, 2, true},
		{"the past is found", func(i *Integer) {
			i.Add(1).Done(2)
			i.Add(2).Done(0)
		}, 3, true},
		{"one that was never answered was done", func(i *Integer) { i.Add(4); i.Add(1).Done(4) }, 5, false},
		{"one that was never answered was not done", func(i *Integer) { i.Add(4); i.Add(1).Done(0) }, 1, false},
		{"one that was refused was done", func(i *Integer) { i.Add(4).Refused() }, 4, true},
		{"a swap", func(i *Integer) { i.Swap(0, 7).Done(0); i.Swap(0, 9).Done(7) }, 7, false},
		{"both of two swaps", func(i *Integer) {
			a, b := i.Swap(0, 7), i.Swap(0, 9)
			a.Done(0)
			b.Done(0)
		}, 9, true},
		{"too many to judge", func(i *Integer) {
			for range 65 {
				i.Add(1)
			}
		}, 1000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Grants{Fail: v.fail}
			i := l.Integer("counter")
			c.do(i)
			i.End(s, c.value)
			if c.wrong {
				v.want(t, "no order of the")
			} else {
				v.want(t, "")
			}
		})
	}
}
