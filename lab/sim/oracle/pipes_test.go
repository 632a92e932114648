package oracle

import "testing"

func TestPipes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		do         func(p *Pipe)
	}{
		{"in pieces of any length", "", func(p *Pipe) {
			w := p.Writer()
			x, a := w.Writing(20)
			y, b := w.Writing(5)
			p.Read(s, a[:3])
			x.Written(s, 20)
			p.Read(s, append(a[3:], b[:1]...))
			y.Written(s, 5)
			p.Close()
			p.Read(s, b[1:])
			p.EOF(s)
		}},
		{"a piece was cut off", "", func(p *Pipe) {
			w := p.Writer()
			x, a := w.Writing(20)
			p.Read(s, a[:10])
			x.Written(s, 10)
			y, b := w.Writing(5)
			p.Read(s, b)
			y.Written(s, 5)
			p.Close()
			p.EOF(s)
		}},
		{"more is read than was taken", "and 10 of them were read", func(p *Pipe) {
			x, a := p.Writer().Writing(20)
			p.Read(s, a[:10])
			x.Written(s, 5)
		}},
		{"a wrong byte", "byte 12 of the stream is wrong", func(p *Pipe) {
			_, a := p.Writer().Writing(20)
			a[12]++
			p.Read(s, a)
		}},
		{"a hole", "nobody has written there", func(p *Pipe) {
			_, a := p.Writer().Writing(20)
			p.Read(s, a[1:])
		}},
		{"out of nothing", "nobody has written there", func(p *Pipe) { p.Read(s, []byte{1}) }},
		{"lost at the end", "after 10 bytes, and 20 were written", func(p *Pipe) {
			x, a := p.Writer().Writing(20)
			x.Written(s, 20)
			p.Read(s, a[:10])
			p.Close()
			p.EOF(s)
		}},
		{"bytes behind the end", "behind its end", func(p *Pipe) {
			x, a := p.Writer().Writing(20)
			x.Written(s, 20)
			p.Close()
			p.EOF(s)
			p.Read(s, a)
		}},
		{"an end that nobody has made", "has not ended it", func(p *Pipe) { p.EOF(s) }},
		{"two writers", "", func(p *Pipe) {
			v, w := p.Writer(), p.Writer()
			x, a := v.Writing(20)
			y, b := w.Writing(20)
			for _, c := range b { // each byte may belong to several pieces, until enough were read
				p.Read(s, []byte{c})
			}
			p.Read(s, a)
			x.Written(s, 20)
			y.Written(s, 20)
			p.Close()
			p.EOF(s)
		}},
		{"two writers mixed", "byte 10 of the stream is wrong", func(p *Pipe) {
			_, a := p.Writer().Writing(20)
			_, b := p.Writer().Writing(20)
			p.Read(s, a[:10])
			p.Read(s, b)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var v verdicts
			l := &Pipes{Fail: v.fail}
			p := l.Pipe("a to b")
			c.do(p)
			p.End(s)
			v.want(t, c.want)
		})
	}
}
