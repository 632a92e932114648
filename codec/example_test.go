package codec_test

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/codec"
)

// Job and Done are messages between a queue and its workers.
type (
	Job  struct{ ID int }
	Done struct {
		ID     int
		Result string
	}
)

// One registry for all messages of a program, on both sides.
func Example() {
	messages := codec.New(codec.JSON[*Job]("job"), codec.JSON[*Done]("done"))
	for _, m := range []any{&Job{7}, &Done{7, "green"}, wrapperspb.String("protobuf needs no line")} {
		b, err := messages.Marshal(m)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%q\n", b)
		received, err := messages.Unmarshal(b) // on another machine
		switch m := received.(type) {
		case *Job:
			fmt.Println("job", m.ID)
		case *Done:
			fmt.Println("done", m.ID, m.Result)
		case *wrapperspb.StringValue:
			fmt.Println(m.Value)
		default:
			fmt.Println(err)
		}
	}
	// Output:
	// "\x03job{\"ID\":7}"
	// job 7
	// "\x04done{\"ID\":7,\"Result\":\"green\"}"
	// done 7 green
	// "\x1bgoogle.protobuf.StringValue\n\x16protobuf needs no line"
	// protobuf needs no line
}

// A custom codec, for messages that have to be small and fast.
func ExampleOwn() {
	type Point struct{ X, Y uint16 }
	messages := codec.New(codec.Own("point",
		func(dst []byte, p Point) ([]byte, error) {
			return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(dst, p.X), p.Y), nil
		},
		func(b []byte) (Point, error) {
			if len(b) != 4 {
				return Point{}, errors.New("a point has 4 bytes")
			}
			return Point{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])}, nil
		}))
	name, body, err := messages.Append(nil, Point{1, 2})
	fmt.Printf("%s: %x %v\n", name, body, err)
	msg, err := messages.Decode(name, body)
	fmt.Println(msg, err)
	_, err = messages.Decode(name, body[:3])
	fmt.Println(err)
	// Output:
	// point: 00010002 <nil>
	// {1 2} <nil>
	// cannot decode "point": a point has 4 bytes
}

// Errors include a remedy.
func ExampleError() {
	messages := codec.New(codec.JSON[*Job]("job"))
	_, err := messages.Marshal(Job{7})
	fmt.Println(err)
	_, err = messages.Marshal(&Done{7, "green"})
	fmt.Println(err, errors.Is(err, codec.ErrUnregistered))
	_, err = messages.Unmarshal([]byte("\x04done{}"))
	fmt.Println(err, errors.Is(err, codec.ErrUnknownType))
	// Output:
	// cannot encode codec_test.Job: it has no codec: *codec_test.Job is registered: send a pointer to it, or register it: codec.JSON[codec_test.Job]("codec_test.Job")
	// cannot encode *codec_test.Done: it has no codec: make it a protobuf message, or register it: codec.JSON[*codec_test.Done]("codec_test.Done") true
	// cannot decode "done": no type has that name: register it here by the same name, or import the package of its protobuf message true
}
