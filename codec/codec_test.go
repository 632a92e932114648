package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type (
	job   struct{ ID int }
	line  struct{ Text string }
	point struct{ x, y uint32 }
	batch []int
	// extended has the methods of a protobuf message, but is none.
	extended struct {
		*wrapperspb.StringValue
		more []int
	}
)

func appendPoint(dst []byte, p point) ([]byte, error) {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, p.x), p.y), nil
}

func decodePoint(b []byte) (point, error) {
	if len(b) != 8 {
		return point{}, io.ErrUnexpectedEOF
	}
	return point{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}, nil
}

func some() *Registry {
	return New(JSON[*job]("job"), JSON[line]("line"), JSON[batch]("batch"), Own("point", appendPoint, decodePoint))
}

// messages are of all kinds, including some that are easily forgotten.
var messages = []struct {
	name string
	msg  any
}{
	{"job", &job{7}},
	{"line", line{"<b>ü\n"}},
	{"line", line{}},
	{"batch", batch{1, 2}},
	{"batch", batch(nil)},
	{"point", point{1, math.MaxUint32}},
	{"google.protobuf.StringValue", wrapperspb.String("hello")},
	{"google.protobuf.StringValue", wrapperspb.String("")},
	{"google.protobuf.Duration", durationpb.New(time.Hour)},
}

// A message encoded after other bytes, in memory that is too short or not, is decoded to the same.
func TestRoundTrip(t *testing.T) {
	r := some()
	for _, m := range messages {
		for _, room := range []int{0, 1, 5, 1000} {
			dst := append(make([]byte, 0, 6+room), "before"...)
			name, out, err := r.Append(dst, m.msg)
			if err != nil || name != m.name || !bytes.HasPrefix(out, []byte("before")) {
				t.Fatalf("%v: %q %q, %v", m.msg, name, out, err)
			}
			body := out[6:]
			if l, ok := m.msg.(line); ok {
				if want, _ := json.Marshal(l); !bytes.Equal(body, want) {
					t.Errorf("%q, json.Marshal gives %q", body, want)
				}
			}
			got, err := r.Decode(name, body)
			same(t, m.msg, got, err)
			whole, err := r.MarshalAppend(dst, m.msg)
			if err != nil || !bytes.HasPrefix(whole, []byte("before")) {
				t.Fatalf("%v: %q, %v", m.msg, whole, err)
			}
			got, err = r.Unmarshal(whole[6:])
			for i := range whole {
				whole[i] = 0xee // the memory of a received message is reused
			}
			same(t, m.msg, got, err)
		}
	}
}

func same(t *testing.T, want, got any, err error) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform(), cmp.AllowUnexported(point{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// The zero value contains protobuf's types, and no others.
func TestZeroRegistry(t *testing.T) {
	var r Registry
	b, err := r.Marshal(wrapperspb.String("hi"))
	if want := "\x1bgoogle.protobuf.StringValue\x0a\x02hi"; string(b) != want || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
	got, err := new(Registry).Unmarshal(b)
	same(t, wrapperspb.String("hi"), got, err)
	if _, err := r.Marshal(&job{}); !errors.Is(err, ErrUnregistered) {
		t.Error(err)
	}
}

// A registered protobuf message has the codec and the name of its registration.
func TestRegisteredProtobuf(t *testing.T) {
	own := Own("text", func(dst []byte, m *wrapperspb.StringValue) ([]byte, error) { return append(dst, m.Value...), nil },
		func(b []byte) (*wrapperspb.StringValue, error) { return wrapperspb.String(string(b)), nil })
	r := New(own)
	b, err := r.Marshal(wrapperspb.String("hi"))
	if string(b) != "\x04texthi" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	got, err := r.Unmarshal(b)
	same(t, wrapperspb.String("hi"), got, err)

	r = New() // a type that was encoded before may be registered, too
	if _, err := r.Marshal(wrapperspb.String("hi")); err != nil {
		t.Error(err)
	}
	r.Register(own)
	b, err = r.Marshal(wrapperspb.String("hi"))
	if string(b) != "\x04texthi" || err != nil {
		t.Errorf("%q, %v", b, err)
	}

	own.name = "google.protobuf.StringValue" // protobuf's name for it, with a custom codec
	r = New()
	if _, err := r.Decode(own.name, nil); err != nil {
		t.Error(err)
	}
	r.Register(own)
	got, err = r.Decode(own.name, []byte("hi"))
	same(t, wrapperspb.String("hi"), got, err)
	// Decode on another goroutine did not find it, just before Register.
	if late := r.findProtobuf(own.name); late.of == nil {
		t.Error("what was registered has been replaced")
	}
}

// A message without generated code has a name as well; one Go type has many of them.
func TestDynamicMessages(t *testing.T) {
	var r Registry
	name := func(d protoreflect.MessageDescriptor) string {
		name, _, err := r.Append(nil, dynamicpb.NewMessage(d))
		if err != nil {
			t.Error(err)
		}
		return name
	}
	for _, d := range []protoreflect.MessageDescriptor{wrapperspb.String("").ProtoReflect().Descriptor(), durationpb.New(0).ProtoReflect().Descriptor()} {
		if got := name(d); got != string(d.FullName()) {
			t.Error(got)
		}
	}
}

// A message that cannot be encoded results in an error with a remedy, and leaves the memory
// unchanged.
func TestNotEncoded(t *testing.T) {
	boom := errors.New("boom")
	r := some()
	r.Register(
		Own("fails", func([]byte, error1) ([]byte, error) { return []byte("half"), boom }, func([]byte) (e error1, err error) { return e, nil }),
		Own("panics", func(dst []byte, m error2) ([]byte, error) { panic(boom) }, func([]byte) (e error2, err error) { return e, nil }),
		Own("greedy", func(dst []byte, m error3) ([]byte, error) {
			dst = dst[:cap(dst)]
			clear(dst)
			return dst, boom
		}, func([]byte) (e error3, err error) { return e, nil }),
		JSON[chan int]("chan"), JSON[float64]("float"),
	)
	for name, c := range map[string]struct {
		msg   any
		cause error
		text  string
	}{
		"nil":                {nil, ErrNil, "cannot encode <nil>: it is nil: a message is a value, or a pointer to one"},
		"nil pointer":        {(*job)(nil), ErrNil, "*codec.job: it is nil"},
		"nil protobuf":       {(*wrapperspb.StringValue)(nil), ErrNil, "*wrapperspb.StringValue: it is nil"},
		"unregistered":       {time.Second, ErrUnregistered, `cannot encode time.Duration: it has no codec: make it a protobuf message, or register it: codec.JSON[time.Duration]("time.Duration")`},
		"pointer to it":      {new(time.Duration), ErrUnregistered, `codec.JSON[*time.Duration]("time.Duration")`},
		"value registered":   {&line{}, ErrUnregistered, "codec.line is registered: send what it points to, or register it"},
		"pointer registered": {job{}, ErrUnregistered, "*codec.job is registered: send a pointer to it, or register it"},
		"embeds protobuf":    {&extended{StringValue: wrapperspb.String("")}, ErrUnregistered, "it embeds *wrapperspb.StringValue: register it, or send what it embeds"},
		"uncomparable":       {extended{wrapperspb.String(""), []int{1}}, ErrUnregistered, "it embeds *wrapperspb.StringValue"},
		"embeds nobody":      {struct{ proto.Message }{}, nil, "panicked"},
		"protobuf value":     {protobufValue, ErrUnregistered, "*durationpb.Duration is a protobuf message: send a pointer to it"},
		"bad UTF-8":          {wrapperspb.String("\xff"), nil, "UTF-8"},
		"fails":              {error1{}, boom, "cannot encode codec.error1: boom"},
		"panics":             {error2{}, boom, "its codec has panicked: boom"},
		"fails late":         {error3{}, boom, "boom"},
		"no JSON":            {make(chan int), nil, "unsupported type: chan int"},
		"no number":          {math.NaN(), nil, "unsupported value: NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			memory := append(make([]byte, 0, 100), "before"...)
			for _, dst := range [][]byte{memory, memory[:6:6]} {
				name, out, err := r.Append(dst, c.msg)
				if name != "" || string(out) != "before" {
					t.Errorf("appended %q, named %q", out, name)
				}
				failed(t, err, c.cause, c.text, unix.EINVAL)
				out, err = r.MarshalAppend(dst, c.msg)
				if string(out) != "before" {
					t.Errorf("appended %q", out)
				}
				failed(t, err, c.cause, c.text, unix.EINVAL)
			}
		})
	}
	var p *PanicError
	_, err := r.Marshal(error2{})
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "TestNotEncoded") {
		t.Errorf("no stack: %v", err)
	}
}

type (
	error1 struct{}
	error2 struct{}
	error3 struct{}
)

// protobufValue is a value, not a pointer; vet forbids copying it.
var protobufValue = func() any { var d any = *durationpb.New(0); return d }()

func failed(t *testing.T, err, cause error, text string, errno unix.Errno) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, errno) || cause != nil && !errors.Is(err, cause) {
		t.Errorf("%v, want %v and %v", err, cause, errno)
	} else if !strings.Contains(err.Error(), text) {
		t.Errorf("it says %q, want %q", err, text)
	}
}

// Bytes that cannot be decoded result in an error.
func TestNotDecoded(t *testing.T) {
	boom := errors.New("boom")
	r := some()
	none := func(dst []byte, _ error1) ([]byte, error) { return dst, nil }
	r.Register(Own("panics", none, func([]byte) (error1, error) { panic(boom) }),
		Own("none", func(dst []byte, _ *point) ([]byte, error) { return dst, nil }, func([]byte) (*point, error) { return nil, nil }))
	for name, c := range map[string]struct {
		name, body string
		cause      error
		text       string
	}{
		"unknown":          {"x.Y", "", ErrUnknownType, `cannot decode "x.Y": no type has that name: register it here by the same name`},
		"no name":          {"", "", ErrUnknownType, `cannot decode ""`},
		"1 MiB of name":    {strings.Repeat("x", 1<<20), "", ErrUnknownType, `cannot decode "` + strings.Repeat("x", 512) + `": no type`},
		"an enumeration":   {"google.protobuf.NullValue", "", ErrUnknownType, ""},
		"cut off":          {"google.protobuf.StringValue", "\x0a\x05hi", nil, "cannot parse"},
		"bad UTF-8":        {"google.protobuf.StringValue", "\x0a\x01\xff", nil, "UTF-8"},
		"deep":             {"google.protobuf.Value", deep(6_000), nil, "recursion"},
		"a body of 1 GiB":  {"google.protobuf.StringValue", "\x0a\x80\x80\x80\x80\x04hi", nil, "cannot parse"},
		"no JSON":          {"job", "{", nil, "unexpected end of JSON"},
		"JSON of others":   {"job", `"hi"`, nil, "cannot unmarshal"},
		"null":             {"job", "null", ErrNil, "the codec has returned no message"},
		"deep JSON":        {"batch", strings.Repeat("[", 20_000), nil, "max depth"},
		"short":            {"point", "1234567", io.ErrUnexpectedEOF, `cannot decode "point": unexpected EOF`},
		"panics":           {"panics", "", boom, "its codec has panicked: boom"},
		"returns no point": {"none", "", ErrNil, "no message"},
	} {
		t.Run(name, func(t *testing.T) {
			msg, err := r.Decode(c.name, []byte(c.body))
			if msg != nil {
				t.Errorf("with its error came %v", msg)
			}
			failed(t, err, c.cause, c.text, unix.EBADMSG)
			if n := len(c.name); n > 0 && n <= MaxName {
				_, err = r.Unmarshal(append(binary.AppendUvarint(nil, uint64(n)), c.name+c.body...))
				failed(t, err, c.cause, c.text, unix.EBADMSG)
			}
		})
	}
	for _, b := range []string{"", "\x00", "\x03jo", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x81\x04" + strings.Repeat("x", 513), "\x80"} {
		_, err := r.Unmarshal([]byte(b))
		failed(t, err, ErrMalformed, "not a message with the name of its type", unix.EBADMSG)
	}
	if n := len(r.tables.Load().byName); n > 10 {
		t.Errorf("%d names are remembered, of strangers as well", n)
	}
}

// deep returns a value nested n lists deep.
func deep(n int) string {
	var b []byte
	for range n { // a value in a list, which is a value
		b = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
		b = protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), b)
	}
	return string(b)
}

// Mistakes in a program are found when it starts.
func TestMistakes(t *testing.T) {
	for name, types := range map[string][]Type{
		"a type twice":         {JSON[point]("a"), JSON[point]("b")},
		"a name twice":         {JSON[point]("a"), JSON[*point]("a")},
		"no name":              {JSON[point]("")},
		"a long name":          {JSON[point](strings.Repeat("n", MaxName+1))},
		"a name not in UTF-8":  {JSON[point]("\xff")},
		"an interface":         {JSON[fmt.Stringer]("a")},
		"protobuf's name":      {JSON[point]("google.protobuf.StringValue")},
		"a Type made by hand":  {{}},
		"Own without a codec":  {Own("a", nil, decodePoint)},
		"Own without a decode": {Own("a", appendPoint, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(JSON[line]("line"))
			defer func() {
				err, _ := recover().(error)
				if err == nil || !strings.HasPrefix(err.Error(), "codec: ") {
					t.Errorf("it panics with %v", err)
				}
				if n := len(r.tables.Load().byName); n != 1 {
					t.Errorf("%d types are registered", n)
				}
				r.Register(JSON[point]("fine")) // and it is not locked
			}()
			r.Register(types...)
		})
	}
}

// Messages are encoded and decoded on many goroutines, while types are registered.
func TestManyGoroutines(t *testing.T) {
	r := some()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 300 {
				m := messages[i%len(messages)]
				b, err := r.Marshal(m.msg)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := r.Unmarshal(b)
				same(t, m.msg, got, err)
			}
		})
	}
	registered := []Type{
		JSON[int8]("i8"), JSON[int16]("i16"), JSON[int32]("i32"), JSON[int64]("i64"),
		JSON[uint8]("u8"), JSON[uint16]("u16"), JSON[uint32]("u32"), JSON[uint64]("u64"),
	}
	for _, of := range registered {
		wg.Go(func() { r.Register(of) })
	}
	wg.Wait()
	for _, msg := range []any{int8(1), int64(1), uint8(1), uint64(1)} {
		b, err := r.Marshal(msg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Unmarshal(b); got != msg || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// In steady state, encoding allocates nothing, and decoding only the message.
func TestAllocations(t *testing.T) {
	r := some()
	buf := make([]byte, 0, 1<<10)
	str := wrapperspb.String("hello")
	var pt any = point{1, 2}
	for name, c := range map[string]struct {
		msg  any
		want float64
	}{"protobuf": {str, 2}, "own": {pt, 1}} {
		b, err := r.Marshal(c.msg)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, _, err := r.Append(buf, c.msg); err != nil {
				t.Fatal(err)
			}
			if _, err := r.MarshalAppend(buf, c.msg); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations to encode", name, n)
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := r.Unmarshal(b); err != nil {
				t.Fatal(err)
			}
		}); n > c.want {
			t.Errorf("%s: %v allocations to decode, want %v", name, n, c.want)
		}
	}
}

// FuzzUnmarshal decodes any bytes, as from an untrusted peer. A decoded message can be encoded
// again.
func FuzzUnmarshal(f *testing.F) {
	r := some()
	for _, m := range messages {
		b, err := r.Marshal(m.msg)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	list, err := structpb.NewList([]any{1, "two", nil})
	if err != nil {
		f.Fatal(err)
	}
	for _, m := range []proto.Message{list, protodesc.ToFileDescriptorProto(descriptorpb.File_google_protobuf_descriptor_proto)} {
		b, err := r.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		msg, err := r.Unmarshal(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || msg != nil {
				t.Fatalf("%v, %v", msg, err)
			}
			return
		}
		again, err := r.Marshal(msg)
		if err != nil {
			t.Fatalf("%x is %v, which cannot be encoded: %v", b, msg, err)
		}
		if _, err := r.Unmarshal(again); err != nil {
			t.Fatalf("%x became %x: %v", b, again, err)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	r := some()
	for _, c := range []struct {
		name string
		msg  any
	}{{"protobuf", wrapperspb.Bytes(make([]byte, 64))}, {"own", point{1, 2}}, {"json", line{"sixty-four bytes are not so much text as one might think: hello"}}} {
		name, body, err := r.Append(nil, c.msg)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/append", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := r.Append(body[:0], c.msg); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Decode(name, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
