package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Registry contains the types of messages by name. The zero value contains those of protobuf.
type Registry struct {
	mu sync.Mutex // held while the tables are changed
	// immutable: changes make new tables
	tables atomic.Pointer[tables]
}

type tables struct {
	byType map[reflect.Type]*Type // registered types, and protobuf messages encoded before
	byName map[string]*Type       // registered types, and protobuf messages decoded before
}

// New makes a Registry with these types, and those of protobuf. It panics as Register does.
func New(types ...Type) *Registry {
	r := new(Registry)
	r.Register(types...)
	return r
}

// Register adds types, at any time. It panics if a name or a Go type is registered already, if a
// name is that of another protobuf message, is empty, too long or not UTF-8, if a type is an
// interface (each message has a concrete type), or if a Type was made by neither JSON nor Own.
func (r *Registry) Register(types ...Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.copyTables()
	for _, t := range types {
		if err := next.add(t); err != nil {
			panic(err)
		}
	}
	r.tables.Store(next)
}

func (r *Registry) copyTables() *tables {
	if now := r.tables.Load(); now != nil {
		return &tables{maps.Clone(now.byType), maps.Clone(now.byName)}
	}
	return &tables{make(map[reflect.Type]*Type), make(map[string]*Type)}
}

func (s *tables) add(t Type) error {
	switch {
	case t.of == nil || t.append == nil:
		return errors.New("codec: a Type is made by JSON, or by Own of two functions")
	case t.of.Kind() == reflect.Interface:
		return fmt.Errorf("codec: %v is an interface: register the types that have it", t.of)
	case t.name == "" || len(t.name) > MaxName || !utf8.ValidString(t.name):
		return fmt.Errorf("codec: %v is to be called %.40q: a name has 1 to %d bytes of UTF-8", t.of, t.name, MaxName)
	}
	if other := s.byType[t.of]; other != nil && other.of != nil {
		return fmt.Errorf("codec: %v is registered already, as %q", t.of, other.name)
	}
	if other := s.byName[t.name]; other != nil && other.of != nil {
		return fmt.Errorf("codec: %q is registered already, for %v", t.name, other.of)
	}
	if theirs, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(t.name)); err == nil {
		if theirs := reflect.TypeOf(theirs.Zero().Interface()); theirs != t.of {
			return fmt.Errorf("codec: %v is to be called %q, as the protobuf message %v is", t.of, t.name, theirs)
		}
	}
	s.byType[t.of], s.byName[t.name] = &t, &t
	return nil
}

// Append implements Codec.
func (r *Registry) Append(dst []byte, msg any) (name string, out []byte, err error) {
	t, name, err := r.findType(msg)
	if err != nil {
		return "", dst, err
	}
	if out, err = t.encode(dst, msg); err != nil {
		return "", dst, &Error{Name: name, Type: fmt.Sprintf("%T", msg), Err: err}
	}
	return name, out, nil
}

// Decode implements Codec.
func (r *Registry) Decode(name string, body []byte) (msg any, err error) {
	t := r.knownType(name)
	if t == nil {
		if t = r.findProtobuf(name); t == nil {
			return nil, unknownNameError(name)
		}
	}
	return t.decodeMessage(body)
}

// Marshal returns the name of msg's type followed by its bytes, for Unmarshal.
func (r *Registry) Marshal(msg any) ([]byte, error) { return r.MarshalAppend(nil, msg) }

// MarshalAppend appends Marshal's result to dst, whose bytes it does not change. If it returns an
// error, nothing was appended.
func (r *Registry) MarshalAppend(dst []byte, msg any) ([]byte, error) {
	t, name, err := r.findType(msg)
	if err != nil {
		return dst, err
	}
	out, err := t.encode(append(binary.AppendUvarint(dst, uint64(len(name))), name...), msg)
	if err != nil {
		return dst, &Error{Name: name, Type: fmt.Sprintf("%T", msg), Err: err}
	}
	return out, nil
}

// Unmarshal returns the message from which Marshal has made b. It keeps no reference to b.
func (r *Registry) Unmarshal(b []byte) (msg any, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n == 0 || n > MaxName || n > uint64(len(b)-used) {
		return nil, &Error{Decoding: true, Err: ErrMalformed}
	}
	name, body := b[used:used+int(n)], b[used+int(n):]
	if now := r.tables.Load(); now != nil {
		if t := now.byName[string(name)]; t != nil { // without a copy of the name
			return t.decodeMessage(body)
		}
	}
	return r.Decode(string(name), body)
}

// findType returns the type of a message, and its name.
func (r *Registry) findType(msg any) (t *Type, name string, err error) {
	if isNil(msg) {
		return nil, "", &Error{Type: fmt.Sprintf("%T", msg), Err: ErrNil, Hint: "a message is a value, or a pointer to one"}
	}
	now := r.tables.Load()
	if now != nil {
		if t := now.byType[reflect.TypeOf(msg)]; t != nil {
			return t, t.name, nil
		}
	}
	m, ok := msg.(proto.Message)
	if !ok {
		return nil, "", unregisteredError(now, reflect.TypeOf(msg))
	}
	of, err := messageType(m)
	if err != nil {
		return nil, "", &Error{Type: fmt.Sprintf("%T", msg), Err: err, Hint: "register it, or send what it embeds"}
	}
	if own := reflect.TypeOf(msg); generatedType(of) == own {
		t = r.addProtobuf(of, own)
		return t, t.name, nil
	}
	return &anyProtobuf, string(of.Descriptor().FullName()), nil
}

// messageType returns the type of a protobuf message. A struct that embeds a message has its
// methods, and would arrive as that message.
func messageType(m proto.Message) (of protoreflect.MessageType, err error) {
	defer recoverPanic(&err)
	r := m.ProtoReflect()
	if r.Interface() != m {
		return nil, fmt.Errorf("%w: it embeds %T", ErrUnregistered, r.Interface())
	}
	return r.Type(), nil
}

// knownType returns a type that was registered, or decoded before.
func (r *Registry) knownType(name string) *Type {
	if now := r.tables.Load(); now != nil {
		return now.byName[name]
	}
	return nil
}

// findProtobuf finds a protobuf message by its name, and remembers it.
func (r *Registry) findProtobuf(name string) *Type {
	of, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.knownType(name); t != nil { // another goroutine was faster
		return t
	}
	next, t := r.copyTables(), protobufType(of)
	next.byName[t.name] = t
	r.tables.Store(next)
	return t
}

// addProtobuf registers a protobuf message by its Go type. Like generated, it does so at most once
// for each type of the program.
func (r *Registry) addProtobuf(of protoreflect.MessageType, t reflect.Type) *Type {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.copyTables()
	if next.byType[t] == nil {
		next.byType[t] = protobufType(of)
	}
	r.tables.Store(next)
	return next.byType[t]
}

func (t *Type) decodeMessage(body []byte) (any, error) {
	msg, err := t.tryDecode(body)
	if err != nil {
		return nil, &Error{Decoding: true, Name: t.name, Err: err}
	}
	return msg, nil
}

// unregisteredError returns the error for a type, with a remedy.
func unregisteredError(now *tables, of reflect.Type) error {
	e := &Error{Type: of.String(), Err: ErrUnregistered}
	other, what := reflect.PointerTo(of), "a pointer to it"
	if of.Kind() == reflect.Pointer {
		other, what = of.Elem(), "what it points to"
	}
	name := of
	for name.Kind() == reflect.Pointer {
		name = name.Elem()
	}
	register := fmt.Sprintf("register it: codec.JSON[%v](%q)", of, name)
	switch {
	case now != nil && now.byType[other] != nil && now.byType[other].of != nil:
		e.Hint = fmt.Sprintf("%v is registered: send %s, or %s", other, what, register)
	case other.Implements(reflect.TypeFor[proto.Message]()):
		e.Hint = fmt.Sprintf("%v is a protobuf message: send %s", other, what)
	default:
		e.Hint = "make it a protobuf message, or " + register
	}
	return e
}

// unknownNameError returns the error for a name, with a remedy. A peer's name may have any length.
func unknownNameError(name string) error {
	if len(name) > MaxName {
		name = name[:MaxName]
	}
	return &Error{
		Decoding: true, Name: name, Err: ErrUnknownType,
		Hint: "register it here by the same name, or import the package of its protobuf message",
	}
}
