// Package compress compresses the messages of a codec, for package rpc (rpc.MethodConfig.Codec) and
// package remoting (remoting.Config.Codec).
//
// Each message begins with a byte that names its format, and every Codec reads all formats. So the
// sides may use different Configs, and a Config may be changed on one side first. Only a Codec of
// this package reads these messages: both sides need one, around the same codec.
//
// Messages are compressed on the goroutine that sends them, and decompressed on the one that
// receives them: some ns for each byte (BenchmarkRoundTrip). For actors and handlers on a loop that
// is the loop's, which large messages would delay.
package compress

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/internal/optional"
)

// Format is how messages are compressed. It is also the first byte of a message, 0 if that is not
// compressed.
type Format byte

// The formats.
const (
	// Gzip is gzip (RFC 1952).
	Gzip Format = 1
	// Zstd is Zstandard (RFC 8878).
	Zstd Format = 2
)

// uncompressed is the first byte of a message that is sent as it is.
const uncompressed Format = 0

// Config determines how a Codec compresses messages, and the largest one that it accepts.
type Config struct {
	// Format of the messages that are sent compressed. 0: Zstd.
	Format Format
	// Above is the size of the largest message, in bytes, that is sent as it is. So is a message
	// that compression does not make smaller. 0: 1,024. Negative: every message is sent as it is.
	Above int
	// Most is the size of the largest message that is received, in bytes, when it is decompressed.
	// 0: 4 MiB. Larger ones are refused with ErrTooLarge, before they take more memory than that.
	Most int
}

// The errors that errors.Is finds in those of Codec.Decode.
var (
	// ErrTooLarge: the message has more than Config.Most bytes.
	ErrTooLarge = errors.New("compress: the message has more bytes than Config.Most")
	// ErrFormat: the peer has no Codec of this package, or a later one.
	ErrFormat = errors.New("compress: unknown format")
)

// tooLarge returns the error for a message of more than most bytes.
func tooLarge(most int) error { return fmt.Errorf("%w (%d)", ErrTooLarge, most) }

// Codec is a codec.Codec that compresses. It may be used on any goroutine, concurrently.
type Codec struct {
	inner codec.Codec
	cfg   Config
	by    [Zstd + 1]method // keyed by the Format
}

var _ codec.Codec = (*Codec)(nil)

// method is a way to compress.
type method interface {
	// compress appends b, compressed, to dst.
	compress(dst, b []byte) []byte
	// expand appends what b is the compressed form of to dst. It fails with ErrTooLarge before it
	// appends more than most bytes.
	expand(dst, b []byte, most int) ([]byte, error)
}

// New returns a Codec for the messages of inner. There is at most one Config. New panics if its
// Format does not exist.
func New(inner codec.Codec, cfg ...Config) *Codec {
	c := &Codec{inner: inner, cfg: optional.Value(cfg)}
	if c.cfg.Above == 0 {
		c.cfg.Above = 1 << 10
	}
	if c.cfg.Most <= 0 {
		c.cfg.Most = 4 << 20
	}
	if c.cfg.Format == 0 {
		c.cfg.Format = Zstd
	}
	c.by = [...]method{uncompressed: plain{}, Gzip: &gzipped{}, Zstd: newZstandard(c.cfg.Most)}
	if int(c.cfg.Format) >= len(c.by) {
		panic(fmt.Sprintf("compress: format %d does not exist", c.cfg.Format))
	}
	return c
}

// Append implements codec.Codec.
func (c *Codec) Append(dst []byte, msg any) (name string, out []byte, err error) {
	start := len(dst)
	name, out, err = c.inner.Append(append(dst, byte(uncompressed)), msg)
	if err != nil {
		return "", dst, err
	}
	body := out[start+1:]
	if c.cfg.Above < 0 || len(body) <= c.cfg.Above {
		return name, out, nil
	}
	scratch := buffers.get()
	defer buffers.put(scratch)
	scratch.b = c.by[c.cfg.Format].compress(scratch.b[:0], body)
	if len(scratch.b) < len(body) {
		out[start] = byte(c.cfg.Format)
		out = append(out[:start+1], scratch.b...)
	}
	return name, out, nil
}

// Decode implements codec.Codec.
func (c *Codec) Decode(name string, body []byte) (any, error) {
	if len(body) == 0 {
		return nil, fmt.Errorf("%w: the message has no first byte", ErrFormat)
	}
	f, body := Format(body[0]), body[1:]
	if int(f) >= len(c.by) {
		return nil, fmt.Errorf("%w: the first byte is %#x", ErrFormat, byte(f))
	}
	scratch := buffers.get()
	defer buffers.put(scratch)
	b, err := c.by[f].expand(scratch.b[:0], body, c.cfg.Most)
	if err != nil {
		return nil, err
	}
	if f != uncompressed {
		scratch.b = b // not the caller's body
	}
	return c.inner.Decode(name, b)
}
