package health

import (
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// The messages have the bytes of gRPC's, by the description that other tools get.
func TestMessages(t *testing.T) {
	RegisterFile()
	message := func(name protoreflect.FullName) *dynamicpb.Message {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
		if err != nil {
			t.Fatal(err)
		}
		return dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
	}
	for s, want := range map[Status]string{Serving: "SERVING", NotServing: "NOT_SERVING", ServiceUnknown: "SERVICE_UNKNOWN"} {
		b, _ := s.AppendBinary(nil)
		m := message("grpc.health.v1.HealthCheckResponse")
		if err := proto.Unmarshal(b, m); err != nil {
			t.Fatal(err)
		}
		field := m.Descriptor().Fields().ByName("status")
		if got := field.Enum().Values().ByNumber(m.Get(field).Enum()).Name(); string(got) != want {
			t.Errorf("%v, want %v", got, want)
		}
		var back Status
		if err := back.UnmarshalBinary(append([]byte("\x12\x01x"), b...)); err != nil || back != s {
			t.Errorf("%v, %v", back, err)
		}
	}
	m := message("grpc.health.v1.HealthCheckRequest")
	if err := protojson.Unmarshal([]byte(`{"service": "shop.Orders"}`), m); err != nil {
		t.Fatal(err)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var q Request
	if err := q.UnmarshalBinary(b); err != nil || q.Service != "shop.Orders" {
		t.Errorf("%q, %v", q.Service, err)
	}
	if got, _ := q.AppendBinary(nil); string(got) != string(b) {
		t.Errorf("%q, want %q", got, b)
	}
	for _, bad := range []string{"\x0a", "\x0a\x05x", "\xff", "\x08"} {
		if err := q.UnmarshalBinary([]byte(bad)); err == nil {
			t.Errorf("%q is a request", bad)
		}
	}
}
