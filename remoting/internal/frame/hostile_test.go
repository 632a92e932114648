package frame

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
)

// hostile are frames that a peer makes up. The reader does not allocate the sizes that they
// announce.
var hostile = map[string]struct {
	frame string
	cause error
}{
	"kind 0":                   {"\x00", ErrMalformed},
	"kind 11":                  {"\x0b", ErrMalformed},
	"kind 15, all flags":       {"\xff", ErrMalformed},
	"a stop with a header":     {"\x87\x01t\x00", ErrMalformed},
	"a stop with a type":       {"\x47\x01t\x00", ErrMalformed},
	"a goodbye to a target":    {"\x12\x00\x00", ErrMalformed},
	"no target":                {"\x07\x00\x00", ErrMalformed},
	"the same target as none":  {"\x17", ErrMalformed},
	"the same type as none":    {"\x63\x01t\x00\x00\x00\x00\x00", ErrMalformed},
	"a name of 1 GiB":          {"\x07\x80\x80\x80\x80\x04t", ErrTooLong},
	"a name of 2^64-1":         {"\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01t", ErrTooLong},
	"a length of 11 bytes":     {"\x07\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01t", ErrMalformed},
	"a name longer than sent":  {"\x07\x09t", ErrTruncated},
	"a request id of 33 bits":  {"\x07\x01t\xff\xff\xff\xff\x1f", ErrTooLong},
	"a body of 4 GiB":          {"\x23\x01t\x00\xff\xff\xff\xffbody\x01T", ErrTruncated},
	"a type of 513":            {"\x23\x01t\x00\x00\x00\x00\x00\x81\x04" + strings.Repeat("T", 513), ErrTooLong},
	"a type that is not UTF-8": {"\x23\x01t\x00\x00\x00\x00\x00\x01\xff", ErrMalformed},
	"65 pairs":                 {"\xa3\x01t\x00\x41" + strings.Repeat("\x00\x00", 65), ErrTooLong},
	"no pairs":                 {"\xa3\x01t\x00\x00", ErrMalformed},
	"a header of 16 KiB and 1": {"\xa3\x01t\x00\x01\x01k\x80\x80\x01" + strings.Repeat("v", 1<<14), ErrTooLong},
	"two values of 9 KiB":      {"\xa3\x01t\x00\x02" + strings.Repeat("\x00\x80\x48"+strings.Repeat("v", 9<<10), 2), ErrTooLong},
	"a long reason":            {"\x02\x00\x81\x04" + strings.Repeat("r", 513), ErrTooLong},
	"nobody watches":           {"\x04\x01t\x00\x00", ErrMalformed},
	"a hello without magic":    {"\x01\x00\x00\x01" + strings.Repeat("\x00", 12) + "\x01n\x00", ErrMalformed},
	"a hello of version 0":     {"\x01\x7e\xdd\x00" + strings.Repeat("\x00", 11) + "\x01\x01n\x00", ErrMalformed},
	"a hello without a size":   {"\x01\x7e\xdd\x01" + strings.Repeat("\x00", 12) + "\x01n\x00", ErrMalformed},
	"a hello without a name":   {"\x01\x7e\xdd\x01" + strings.Repeat("\x00", 11) + "\x01\x00\x00", ErrMalformed},
	"a hello with more behind": {"\x01\x7e\xdd\x01" + strings.Repeat("\x00", 11) + "\x01\x01n\x00\x07\x01t\x00", ErrMalformed},
	"a hello with flags":       {"\x11\x7e\xdd\x01" + strings.Repeat("\x00", 11) + "\x01\x01n\x00", ErrMalformed},
	"a hello behind a record":  {"\x07\x01t\x00\x01\x7e\xdd\x01" + strings.Repeat("\x00", 11) + "\x01\x01n\x00", ErrMalformed},
	"a hello behind one that looks like it": {
		"\x07\x7e\xdd\x81aaaaaaaa\x00\x00\x00\x01\x01n\x00" + strings.Repeat("a", 109) + "\x00\x01", ErrMalformed,
	},
	"text, from somebody else":   {"GET / HTTP/1.1\r\n\r\n", ErrMalformed},
	"a member of 1 GiB":          {"\x01\x7e\xdd\x01" + strings.Repeat("\x00", 11) + "\x01\x01n\x80\x80\x80\x80\x04", ErrTooLong},
	"a message of 2 GiB allowed": {"\x01\x7e\xdd\x01" + strings.Repeat("\x00", 8) + "\x80\x00\x00\x00\x01n\x00", ErrMalformed},
}

func TestHostileFrames(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			before := allocated()
			d := NewReader([]byte(c.frame), nil)
			var r Record
			ok, err := true, error(nil)
			for ok {
				ok, err = d.Next(&r)
			}
			if got := allocated() - before; got > 256<<10 {
				t.Errorf("%d bytes were allocated for a frame of %d", got, len(c.frame))
			}
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, c.cause) || !errors.Is(err, unix.EPROTO) {
				t.Errorf("%v, want %v", err, c.cause)
			}
			if cmp.Diff(Record{}, r) != "" {
				t.Errorf("with its error came %+v", r)
			}
			if ok, again := d.Next(&r); ok || again != err { //nolint:errorlint // the very same
				t.Errorf("and then %v, %v", ok, again)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// FuzzFrame reads any bytes. What can be read can be written again, and is then the same. It
// allocates in proportion to the bytes.
func FuzzFrame(f *testing.F) {
	for _, g := range goldens {
		var w Writer
		for _, r := range g.records {
			if err := w.Append(&r); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(w.Bytes())
	}
	for _, c := range hostile {
		f.Add([]byte(c.frame))
	}
	var names Names
	f.Fuzz(func(t *testing.T, b []byte) {
		d := NewReader(b, &names)
		var records []Record
		before := allocated()
		for {
			r := Record{}
			ok, err := d.Next(&r)
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Offset > len(b) {
					t.Fatalf("%x: %v", b, err)
				}
			}
			if !ok {
				break
			}
			records = append(records, r)
		}
		// A record of one byte is a Record in this slice, which grows by doubling.
		if got, bound := allocated()-before, uint64(1<<20+2048*len(b)); got > bound {
			t.Fatalf("%d bytes allocated for %d", got, len(b))
		}
		again(t, b, records)
	})
}

// again writes records and reads them.
func again(t *testing.T, b []byte, records []Record) {
	var w Writer
	for i := range records {
		if h := records[i].Hello; h != nil && h.Version != Version {
			return
		}
		if err := w.Append(&records[i]); err != nil {
			t.Fatalf("%x has %+v, which cannot be written: %v", b, records[i], err)
		}
	}
	got, err := read(w.Bytes())
	if diff := cmp.Diff(records, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Record{}, "Same")); diff != "" || err != nil {
		t.Fatalf("%x: %v\n%s", b, err, diff)
	}
}

// FuzzNumbers reads lengths in all forms a varint has.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte{0x80, 0x00}, uint64(5))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, uint64(1<<63))
	f.Fuzz(func(t *testing.T, b []byte, limit uint64) {
		d := NewReader(b, nil)
		n, err := d.readNumber("seq", limit)
		want, used := binary.Uvarint(b)
		if good := used > 0 && want <= limit; good != (err == nil) || good && (n != want || d.at != used) {
			t.Fatalf("%x up to %d: %d, %v; want %d in %d", b, limit, n, err, want, used)
		}
	})
}
