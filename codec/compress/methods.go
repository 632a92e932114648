package compress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// buffers are reused between messages.
var buffers pool

type pool struct{ p sync.Pool }

type buffer struct{ b []byte }

// keepBuffer is the size of the largest buffer that is kept, in bytes.
const keepBuffer = 1 << 20

func (p *pool) get() *buffer {
	if b, ok := p.p.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

func (p *pool) put(b *buffer) {
	if cap(b.b) <= keepBuffer {
		p.p.Put(b)
	}
}

// plain does not compress.
type plain struct{}

func (plain) compress(dst, b []byte) []byte { return append(dst, b...) }

// expand returns b itself.
func (plain) expand(_, b []byte, most int) ([]byte, error) {
	if len(b) > most {
		return nil, tooLarge(most)
	}
	return b, nil
}

// zstandard is Zstd.
type zstandard struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newZstandard(most int) zstandard {
	// neither has an input, so no goroutine is started, and the options are right
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(uint64(most)), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err)
	}
	return zstandard{e, d}
}

func (z zstandard) compress(dst, b []byte) []byte { return z.encoder.EncodeAll(b, dst) }

func (z zstandard) expand(dst, b []byte, most int) ([]byte, error) {
	out, err := z.decoder.DecodeAll(b, dst)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded), err == nil && len(out) > most:
		return nil, tooLarge(most)
	case err != nil:
		return nil, fmt.Errorf("compress: zstd: %w", err)
	}
	return out, nil
}

// gzipped is Gzip.
type gzipped struct{ writers, readers sync.Pool }

func (g *gzipped) compress(dst, b []byte) []byte {
	out := bytes.NewBuffer(dst)
	w, ok := g.writers.Get().(*gzip.Writer)
	if !ok {
		w, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	}
	defer g.writers.Put(w)
	w.Reset(out)
	_, _ = w.Write(b) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func (g *gzipped) expand(dst, b []byte, most int) ([]byte, error) {
	in := bytes.NewReader(b)
	r, ok := g.readers.Get().(*gzip.Reader)
	if !ok {
		r = new(gzip.Reader)
	}
	defer g.readers.Put(r)
	out := bytes.NewBuffer(dst)
	err := r.Reset(in)
	if err == nil {
		_, err = io.Copy(out, io.LimitReader(r, int64(most)+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("compress: gzip: %w", err)
	case out.Len() > most:
		return nil, tooLarge(most)
	}
	return out.Bytes(), nil
}
