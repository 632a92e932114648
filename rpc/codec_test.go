package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	codecs "github.com/rdmactor/rdmactor/codec"
)

type (
	person struct {
		Name string
		Tags map[string]int `json:",omitempty"`
	}
	point struct{ x, y uint32 }
)

var points = codecs.New(codecs.Own("point", func(dst []byte, p point) ([]byte, error) {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, p.x), p.y), nil
}, func(b []byte) (p point, err error) {
	if len(b) != 8 {
		return p, io.ErrUnexpectedEOF
	}
	return point{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}, nil
}), codecs.JSON[*person]("person"))

// Structs without protobuf are JSON, or encoded by the codec of the method.
func TestPlainStructs(t *testing.T) {
	plain := NewMethod[person, person]("test.Plain")
	own := NewMethod[point, person]("test.Own", MethodConfig{Codec: points})
	stream := NewBidiStream[person, point]("test.OwnStream", MethodConfig{Codec: points})
	inWorld(t, rigConfig{}, func(s *Server) {
		Handle(s, plain, func(_ context.Context, q *person) (*person, error) {
			q.Tags["b"]++
			return q, nil
		})
		Handle(s, own, func(_ context.Context, q *point) (*person, error) {
			return &person{Name: strings.Repeat("x", int(q.x+q.y))}, nil
		})
		HandleBidiStream(s, stream, func(_ context.Context, in *Receiver[person], out *Sender[point]) error {
			q, err := in.Receive()
			if err != nil {
				return err
			}
			return out.Send(&point{uint32(len(q.Name)), 7})
		})
	}, func(r *rig) {
		got, err := Call(r.t.Context(), r.c, plain, &person{"Ann", map[string]int{"a": 1}})
		if err != nil || got.Name != "Ann" || got.Tags["a"] != 1 || got.Tags["b"] != 1 {
			r.t.Error(got, err)
		}
		if got, err := Call(r.t.Context(), r.c, own, &point{1, 2}); err != nil || got.Name != "xxx" {
			r.t.Error(got, err)
		}
		asRaw := RawMethod{newMethod("test.Own", unary, bytesCodec, bytesCodec)}
		if b, err := CallRaw(r.t.Context(), r.c, asRaw, []byte("\x00\x00\x00\x01\x00\x00\x00\x02"), nil); err != nil || string(b) != `{"Name":"xxx"}` {
			r.t.Errorf("%q, %v", b, err)
		}
		_, err = CallRaw(r.t.Context(), r.c, asRaw, []byte("short"), nil)
		want(r.t, err, ErrBadMessage, FateAnswered)
		d, err := OpenBidiStream(r.t.Context(), r.c, stream)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := d.Send(&person{Name: "Bob"}); err != nil {
			r.t.Fatal(err)
		}
		if p, err := d.Receive(); err != nil || *p != (point{3, 7}) {
			r.t.Error(p, err)
		}
		d.Close()
		e, err := NewError(errTaken, "", &person{Name: "details"})
		if got, ok := DetailsOf[person](e); err != nil || !ok || got.Name != "details" {
			r.t.Error(got, ok, err)
		}
		r.Wait()
	})
}

// Types that cannot be encoded are found when the program starts.
func TestTypesWithoutACodec(t *testing.T) {
	for name, declare := range map[string]func(){
		"JSON":            func() { NewMethod[chan int, person]("test.Chan") },
		"not in Codec":    func() { NewMethod[point, chan int]("test.NotIn", MethodConfig{Codec: points}) },
		"of an item, too": func() { NewStream[point, chan int]("test.Item", MethodConfig{Codec: points}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "chan int") {
					t.Errorf("it panics with %v", err)
				}
			}()
			declare()
		})
	}
	if _, err := userCodec[struct{ x int }](points); !errors.Is(err, codecs.ErrUnregistered) {
		t.Error(err)
	}
}
