package compress_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/codec/compress"
)

// uncompressed is the first byte of a message that is sent as it is.
const uncompressed compress.Format = 0

var configs = map[string]compress.Config{
	"zstd":              {},
	"gzip":              {Format: compress.Gzip},
	"plain":             {Above: -1},
	"zstd, every":       {Above: 1},
	"gzip, every":       {Format: compress.Gzip, Above: 1},
	"zstd, small limit": {Most: 2 << 20},
}

func texts() map[string]string {
	random := make([]byte, 300_000)
	r := rand.NewChaCha8([32]byte{7})
	_, _ = r.Read(random)
	for i := range random {
		random[i] = random[i]&0x7f | 1 // valid UTF-8
	}
	return map[string]string{
		"empty": "", "short": "rdma", "at the threshold": strings.Repeat("a", 1021),
		"text": strings.Repeat("the quick brown fox ", 5_000), "noise": string(random),
		"1 MiB": strings.Repeat("x", 1<<20),
	}
}

// What one side appends the other decodes, whatever their formats: every Codec reads all formats,
// so that a Config can be changed on one side first.
func TestEveryCodecReadsAllFormats(t *testing.T) {
	for from, sends := range configs {
		for to, receives := range configs {
			a, b := compress.New(codec.New(), sends), compress.New(codec.New(), receives)
			for what, text := range texts() {
				name, out, err := a.Append([]byte("before"), wrapperspb.String(text))
				if err != nil || !bytes.HasPrefix(out, []byte("before")) {
					t.Fatalf("%s, %s: %v, and %.20q", from, what, err, out)
				}
				got, err := b.Decode(name, out[len("before"):])
				if err != nil {
					t.Fatalf("%s to %s, %s: %v", from, to, what, err)
				}
				if got.(*wrapperspb.StringValue).GetValue() != text {
					t.Errorf("%s to %s, %s: another text", from, to, what)
				}
			}
		}
	}
}

// Messages up to Above, and those that compression does not make smaller, are one byte longer than
// without the package, and no more.
func TestWhatIsCompressed(t *testing.T) {
	for _, tt := range []struct {
		what  string
		cfg   compress.Config
		text  string
		first compress.Format
	}{
		{"small", compress.Config{}, strings.Repeat("a", 1_000), uncompressed},
		{"large", compress.Config{}, strings.Repeat("a", 2_000), compress.Zstd},
		{"large, gzip", compress.Config{Format: compress.Gzip}, strings.Repeat("a", 2_000), compress.Gzip},
		{"small, above 10", compress.Config{Above: 10}, strings.Repeat("a", 100), compress.Zstd},
		{"noise", compress.Config{}, texts()["noise"][:3], uncompressed},
		{"never", compress.Config{Above: -1}, strings.Repeat("a", 2_000), uncompressed},
	} {
		_, own, _ := codec.New().Append(nil, wrapperspb.String(tt.text))
		_, out, err := compress.New(codec.New(), tt.cfg).Append(nil, wrapperspb.String(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if f := compress.Format(out[0]); f != tt.first {
			t.Errorf("%s: the format is %v, want %v", tt.what, f, tt.first)
		}
		if tt.first == uncompressed && len(out) != len(own)+1 {
			t.Errorf("%s: %d bytes, %d without the package", tt.what, len(out), len(own))
		}
		if tt.first != uncompressed && len(out) >= len(own) {
			t.Errorf("%s: %d bytes, %d without the package", tt.what, len(out), len(own))
		}
	}
}

// A message that is larger than Most when it is decompressed is refused, and takes no more memory
// than a few times Most: a peer could else fill this process's memory with a message of some
// hundred bytes.
func TestBombs(t *testing.T) {
	const most = 1 << 20
	large := wrapperspb.String(strings.Repeat("\x00", 64<<20))
	for name, f := range map[string]compress.Format{"zstd": compress.Zstd, "gzip": compress.Gzip} {
		typ, bomb, err := compress.New(codec.New(), compress.Config{Format: f}).Append(nil, large)
		if err != nil {
			t.Fatal(err)
		}
		c := compress.New(codec.New(), compress.Config{Most: most})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = c.Decode(typ, bomb)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, compress.ErrTooLarge) || !strings.Contains(err.Error(), strconv.Itoa(most)) {
			t.Errorf("%s, %d bytes: %v, want ErrTooLarge with its limit", name, len(bomb), err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 8*most {
			t.Errorf("%s: to refuse it took %d bytes of memory, with a Most of %d", name, n, most)
		}
		// several frames, one behind the other, each within the limit
		_, part, err := compress.New(codec.New(), compress.Config{Format: f}).Append(nil, wrapperspb.String(strings.Repeat("\x00", most/2)))
		if err != nil {
			t.Fatal(err)
		}
		many := append([]byte{byte(f)}, bytes.Repeat(part[1:], 10)...)
		if _, err := c.Decode(typ, many); !errors.Is(err, compress.ErrTooLarge) {
			t.Errorf("%s, frame behind frame: %v, want ErrTooLarge", name, err)
		}
	}
	if _, err := compress.New(codec.New(), compress.Config{Most: 10}).Decode("x", make([]byte, 12)); !errors.Is(err, compress.ErrTooLarge) || !strings.Contains(err.Error(), "10") {
		t.Errorf("plain: %v, want ErrTooLarge with its limit", err)
	}
}

// An error of the codec that is compressed is returned, and dst is as it was.
func TestErrorsOfTheCodec(t *testing.T) {
	dst := []byte("before")
	if _, out, err := compress.New(codec.New()).Append(dst, struct{}{}); !errors.Is(err, codec.ErrUnregistered) || !slices.Equal(out, dst) {
		t.Errorf("%v, and %q", err, out)
	}
	for _, b := range [][]byte{nil, {3}, {255, 1, 2}} {
		if _, err := compress.New(codec.New()).Decode("x", b); !errors.Is(err, compress.ErrFormat) {
			t.Errorf("%v: %v, want ErrFormat", b, err)
		}
	}
}

// A Codec has a state for each message, not for all: goroutines that use it at the same time do not
// see each other's bytes.
func TestConcurrently(t *testing.T) {
	for name, cfg := range configs {
		c := compress.New(codec.New(), cfg)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := range 50 {
					text := strings.Repeat(string(rune('a'+i)), 1_000+100*n)
					typ, out, err := c.Append(nil, wrapperspb.String(text))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := c.Decode(typ, out)
					if err != nil || got.(*wrapperspb.StringValue).GetValue() != text {
						t.Errorf("%s: %v, or another text", name, err)
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// Bytes of a peer never panic, and never decode to more than Most bytes.
func FuzzDecode(f *testing.F) {
	const most = 64 << 10
	c := compress.New(codec.New(), compress.Config{Most: most})
	for _, cfg := range configs {
		for _, text := range texts() {
			_, out, _ := compress.New(codec.New(), cfg).Append(nil, wrapperspb.String(text))
			f.Add(out[:min(len(out), 4<<10)])
		}
	}
	name, _, _ := codec.New().Append(nil, wrapperspb.String(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := c.Decode(name, b)
		if err != nil {
			return
		}
		if n := len(got.(*wrapperspb.StringValue).GetValue()); n > most {
			t.Errorf("%d bytes, with a Most of %d", n, most)
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	var lines strings.Builder
	for i := range 4_000 {
		lines.WriteString("order=" + string(rune('a'+i%26)) + " state=delivered\n")
	}
	msg := wrapperspb.String(lines.String())
	for name, cfg := range configs {
		b.Run(name, func(b *testing.B) {
			c := compress.New(codec.New(), cfg)
			var out []byte
			var name string
			b.SetBytes(int64(lines.Len()))
			b.ReportAllocs()
			for b.Loop() {
				name, out, _ = c.Append(out[:0], msg)
				if _, err := c.Decode(name, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(out))/float64(lines.Len()), "of-its-size")
		})
	}
}
