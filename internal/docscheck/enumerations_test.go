package docscheck

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// enumerations has a value of each enumeration type, and its text.
var enumerations = []struct {
	value encoding.TextMarshaler
	want  string
}{
	{states.AddrResolved, "addr-resolved"},
	{states.KindAddrResolved, "AddrResolved"},
	{states.KindReceived, "Received"},
	{states.KindAtomicDone, "AtomicDone"},
	{states.OpBindAddr, "BindAddr"},
	{states.CommandFailed(states.OpConnect), "Connect fails"},
	{states.Guard, "guard"},
	{states.EINVAL, "EINVAL"},
	{states.IWARP | states.Device, "iWARP RC, device"},
	{cmid.PortSpaceUDP, "UDP"},
	{cmid.FamilyIPv6, "IPv6"},
	{cmid.QPTypeRC, "RC"},
	{cmid.OptionAckTimeout, "ACK_TIMEOUT"},
	{cmid.RejectInvalidServiceID, "nobody listens on that port"},
	{cmid.EAINoName, "node not known"},
	{verbs.StatusFlushed, "work request flushed"},
	{verbs.AtomicFetchAdd, "fetch and add"},
	{verbs.QPFatal, "fatal"},
	{verbs.PKeyChange, "PKey change"},
	{verbs.UD, "UD"},
	{verbs.QPError, "ERR"},
	{eventloop.Busy, "busy"},
	{eventloop.Readable | eventloop.Hangup, "readable|hangup"},
	{reconnect.Unsent, "unsent"},
	{reconnect.LinkQueueing, "queueing"},
	{rpc.FateRefused, "refused"},
	{rpc.RoundRobin, "round robin"},
	{rdma.PSK, "PSK"},
	{rdma.FailedUnknownKey, "unknown key"},
	{cmidtest.MsgREQ, "MsgREQ"},
	{wire.OpSend, "Send"},
	{wire.LayerDDP, "DDP"},
	{remoting.Watch, "watch"},
	{remoting.Block, "block"},
}

// TestEnumerations: values of enumerations print their names everywhere: with fmt, in JSON, in
// slog's handlers. Only a WaitMode's text is parsed, as programs have it in their configuration.
func TestEnumerations(t *testing.T) {
	for _, e := range enumerations {
		text, err := e.value.MarshalText()
		if got := fmt.Sprint(e.value); got != e.want || string(text) != e.want || err != nil {
			t.Errorf("%T prints as %q, its text is %q, %v; want %q", e.value, got, text, err, e.want)
		}
		want, err := json.Marshal(e.want)
		if got, e := json.Marshal(e.value); string(got) != string(want) || e != nil || err != nil {
			t.Errorf("in JSON it is %s, %v, want %s", got, e, want)
		}
		none := reflect.ValueOf(e.value).Type()
		if v := reflect.New(none).Elem(); v.CanUint() {
			v.SetUint(1<<none.Bits() - 1)
			if got := fmt.Sprint(v.Interface()); got == "" || strings.Contains(got, "PANIC") {
				t.Errorf("%v prints %q for a number that is none of it", none, got)
			}
		}
	}
}

func TestWaitModeIsReadBack(t *testing.T) {
	for _, m := range []eventloop.WaitMode{eventloop.Block, eventloop.Spin, eventloop.Busy} {
		text, _ := m.MarshalText()
		back := eventloop.WaitMode(99)
		if err := back.UnmarshalText(text); err != nil || back != m {
			t.Errorf("%q reads back as %v, %v", text, back, err)
		}
	}
	m := eventloop.Spin
	if err := m.UnmarshalText([]byte("lazy")); err == nil || m != eventloop.Spin {
		t.Errorf("a mode that there is not: %v, %v", m, err)
	}
}

// sets are types whose values are combined, and numbers that others add to.
var sets = regexp.MustCompile(`^(cmid\.AddrInfoFlags|verbs\.(Access|SendFlags|QPAttrMask)|wire\.(Flags|Type)|rpc\.Code|cmid\.Handle|mailbox\.Lane)$`)

// TestEnumerationsAreComplete: no exported enumeration is missing above.
func TestEnumerationsAreComplete(t *testing.T) {
	have := make(map[string]bool)
	for _, e := range enumerations {
		have[reflect.TypeOf(e.value).String()] = true
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case slices.Contains([]string{".git", "testdata", "lab", "examples", "cmd", "internal", "uabi"}, d.Name()):
			return fs.SkipDir
		}
		for _, name := range integersWithConstants(t, dir) {
			if !have[name] && !sets.MatchString(name) {
				t.Errorf("%s in %s is an enumeration: it has a String and a MarshalText, and a line above", name, dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// integersWithConstants lists a folder's exported integer types that constants are of.
func integersWithConstants(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	integers, used := make(map[string]bool), make(map[string]bool)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					of, ok := s.Type.(*ast.Ident)
					integers[f.Name.Name+"."+s.Name.Name] = ok && s.Name.IsExported() && strings.Contains(of.Name, "int")
				case *ast.ValueSpec:
					if of, ok := s.Type.(*ast.Ident); ok && g.Tok == token.CONST {
						used[f.Name.Name+"."+of.Name] = true
					}
				}
			}
		}
	}
	for name := range used {
		if integers[name] {
			names = append(names, name)
		}
	}
	return names
}

// TestKindsAreNamed: an event's kind has the name of its type.
func TestKindsAreNamed(t *testing.T) {
	for _, ev := range []cmid.Event{
		&cmid.Bound{}, &cmid.Listening{}, &cmid.CommandFailed{}, &cmid.Done{}, &cmid.QPFailed{}, &cmid.ListenFailed{}, &cmid.Closed{},
		&cmid.AddrResolved{}, &cmid.AddrError{}, &cmid.RouteResolved{}, &cmid.RouteError{}, &cmid.ConnectRequest{},
		&cmid.ConnectResponse{}, &cmid.ConnectError{}, &cmid.Unreachable{}, &cmid.Rejected{}, &cmid.Established{},
		&cmid.Disconnected{}, &cmid.DeviceRemoval{}, &cmid.MulticastJoin{}, &cmid.MulticastError{}, &cmid.AddrChange{},
		&cmid.NeighbourChanged{},
		&cmid.TimewaitExit{}, &cmid.AddrInfoResolved{}, &cmid.AddrInfoError{}, &cmid.User{}, &cmid.Internal{},
		&rdma.Received{}, &rdma.Sent{}, &rdma.SendFailed{}, &rdma.Writable{}, &rdma.MemoryAllocated{}, &rdma.Granted{},
		&rdma.Revoked{}, &rdma.ReadDone{}, &rdma.WriteDone{}, &rdma.AccessError{}, &rdma.AtomicDone{},
	} {
		if want := strings.TrimPrefix(path.Ext(fmt.Sprintf("%T", ev)), "."); ev.Kind().String() != want {
			t.Errorf("the kind of %T is %v, want %s", ev, ev.Kind(), want)
		}
	}
}
