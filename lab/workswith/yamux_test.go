package workswith

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/hashicorp/yamux"
)

// A hundred streams of hashicorp/yamux share one connection.
func TestYamux(t *testing.T) {
	l, d := listen(t)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s, err := yamux.Server(c, nil)
		for err == nil {
			var stream io.ReadWriteCloser
			if stream, err = s.Accept(); err == nil {
				go func() {
					_, _ = io.Copy(stream, stream)
					_ = stream.Close()
				}()
			}
		}
		_ = s.Close()
	}()
	c, err := d.DialContext(t.Context(), "", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := yamux.Client(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	var streams sync.WaitGroup
	for i := range 100 {
		streams.Go(func() {
			stream, err := s.Open()
			if err != nil {
				t.Error(err)
				return
			}
			want := bytes.Repeat([]byte{byte(i)}, 10_000)
			_, sent := stream.Write(want)
			got := make([]byte, len(want))
			_, received := io.ReadFull(stream, got)
			if err := errors.Join(sent, received, stream.Close()); err != nil || !bytes.Equal(got, want) {
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	streams.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
