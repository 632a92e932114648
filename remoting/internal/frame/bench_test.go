package frame

import (
	"strconv"
	"testing"
)

// sixteen returns requests of 64 bytes as one frame has them: some senders, few targets, one type.
func sixteen() []Record {
	records := make([]Record, 16)
	for i := range records {
		records[i] = Record{
			Kind: KindUser, Target: "echo-" + strconv.Itoa(i/4), Sender: PID{ID: "future$1" + strconv.Itoa(i)},
			Type: "bench.Echo", Body: make([]byte, 64),
		}
	}
	return records
}

func writeAll(tb testing.TB, w *Writer, buf []byte, records []Record) []byte {
	w.Reset(buf[:0])
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			tb.Fatal(err)
		}
	}
	return w.Bytes()
}

func readAll(tb testing.TB, b []byte, names *Names, r *Record) {
	n := 0
	d := NewReader(b, names)
	for {
		ok, err := d.Next(r)
		if err != nil {
			tb.Fatal(err)
		}
		if !ok {
			break
		}
		n += len(r.Body)
	}
	if n != 16*64 {
		tb.Fatal(n)
	}
}

func BenchmarkWrite(b *testing.B) {
	var w Writer
	records := sixteen()
	buf := writeAll(b, &w, nil, records)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = writeAll(b, &w, buf, records)
	}
	perRecord(b)
}

func BenchmarkRead(b *testing.B) {
	var w Writer
	var names Names
	var r Record
	buf := writeAll(b, &w, nil, sixteen())
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		readAll(b, buf, &names, &r)
	}
	perRecord(b)
}

func perRecord(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/record")
}

// In steady state nothing is allocated.
func TestAllocations(t *testing.T) {
	var w Writer
	var names Names
	var r Record
	records := sixteen()
	records[3].Header = []Pair{{"trace", "on"}}
	buf := writeAll(t, &w, nil, records)
	if n := testing.AllocsPerRun(100, func() { buf = writeAll(t, &w, buf, records) }); n != 0 {
		t.Errorf("%v allocations to write a frame", n)
	}
	if n := testing.AllocsPerRun(100, func() { readAll(t, buf, &names, &r) }); n > 1 {
		t.Errorf("%v allocations to read a frame with one value of a header", n)
	}
}
