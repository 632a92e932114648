package frame

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// goldens are frames, and testdata/frames.txt has their bytes.
var goldens = []struct {
	name    string
	records []Record
}{
	{"hello", []Record{{Kind: KindHello, Hello: &Hello{
		Version: 1, Name: "10.0.0.1:7471", Member: "m1", Incarnation: 0x0102030405060708, MaxMessage: 1 << 20,
	}}}},
	{"goodbye", []Record{{Kind: KindGoodbye, Code: GoodbyeBlocked, Reason: "m1 is blocked"}}},
	{"a message of nobody", []Record{{Kind: KindUser, Same: SameSender, Target: "sink", Type: "x.T", Body: []byte("hi")}}},
	{"a request", []Record{{
		Kind: KindUser, Target: "echo", Sender: PID{ID: "future$#0", Request: 7}, Type: "x.T", Body: []byte("hi"),
	}}},
	{"an answer", []Record{{
		Kind: KindUser, Same: SameSender, Target: "future$#0", TargetRequest: 7, Type: "x.T", Body: []byte("hi"),
	}}},
	{"a request and a header", []Record{{
		Kind: KindUser, Target: "echo", TargetRequest: 300, Sender: PID{ID: "future$1", Request: 7}, Type: "x.T",
		Header: []Pair{{"trace", "42"}, {"", ""}}, Body: []byte("hi"),
	}}},
	{"the same again", []Record{
		{Kind: KindUser, Target: "echo", Sender: PID{Address: "far:1", ID: "a"}, Type: "x.T", Body: []byte("1")},
		{Kind: KindUser, Target: "echo", Sender: PID{Address: "far:1", ID: "a"}, Type: "x.T", Same: SameTarget | SameSender | SameType, Body: []byte{}},
		{Kind: KindUser, Target: "echo", Type: "y.T", Same: SameTarget, Body: []byte("2")},
		{Kind: KindStop, Target: "echo", Same: SameTarget},
	}},
	{"watches", []Record{
		{Kind: KindWatch, Target: "a", Sender: PID{ID: "w"}},
		{Kind: KindUnwatch, Target: "a", Sender: PID{ID: "w"}, Same: SameTarget | SameSender},
		{Kind: KindTerminated, Target: "w", Sender: PID{ID: "a"}, Code: TerminatedNotFound},
	}},
	{"spawning", []Record{
		{Kind: KindSpawn, Seq: 1 << 40, Type: "worker", Same: SameTarget},
		{Kind: KindSpawn, Seq: 2, Type: "worker", Target: "w7", Same: SameType},
		{Kind: KindSpawned, Seq: 1 << 40, Target: "$1f"},
		{Kind: KindSpawned, Seq: 2, Code: SpawnedExists, Reason: "w7 is there"},
	}},
	{"refused", []Record{{Kind: KindRefused, Target: "gone", Sender: PID{ID: "future$1"}, Code: RefusedDenied, Reason: "not exposed"}}},
}

// The bytes are those of docs/remoting-wire.md. They do not change without another version.
func TestGolden(t *testing.T) {
	file, err := os.ReadFile("testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(file)) {
		if name, bytes, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			want[name] = strings.ReplaceAll(strings.TrimSpace(bytes), " ", "")
		}
	}
	if len(want) != len(goldens) {
		t.Errorf("%d frames in the file, %d here", len(want), len(goldens))
	}
	for _, g := range goldens {
		b := write(t, g.records)
		if got := hex.EncodeToString(b); got != want[g.name] {
			t.Errorf("%s:\n%s, want\n%s", g.name, got, want[g.name])
		}
		got, err := read(b)
		if diff := cmp.Diff(g.records, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", g.name, err, diff)
		}
	}
}

// The document's examples are among these.
func TestExamplesOfTheDocument(t *testing.T) {
	file, err := os.ReadFile("testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/remoting-wire.md")
	if err != nil {
		t.Fatal(err)
	}
	_, examples, ok := strings.Cut(string(page), "## Examples")
	examples, _, _ = strings.Cut(examples, "\n## ")
	found := 0
	for line := range strings.Lines(examples) {
		if frame, is := strings.CutPrefix(line, "    "); is {
			found++
			if !strings.Contains("\n"+string(file), "\n"+frame) {
				t.Errorf("testdata/frames.txt has no %q", frame)
			}
		}
	}
	if !ok || found == 0 {
		t.Error("the document has no examples")
	}
}

// Cut off anywhere, a frame has fewer records or is truncated. Nothing else is found in it.
func TestTruncated(t *testing.T) {
	for _, g := range goldens {
		b := write(t, g.records)
		for n := range b {
			got, err := read(b[:n:n])
			if err != nil && (!errors.Is(err, ErrTruncated) || !errors.Is(err, unix.EPROTO)) {
				t.Errorf("%s: %d of %d bytes: %v", g.name, n, len(b), err)
			}
			if err == nil && len(got) >= len(g.records) {
				t.Errorf("%s: %d of %d bytes have all records", g.name, n, len(b))
			}
		}
	}
}

// Whatever a Writer writes is read back.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 12).Draw(t, "records")
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "prefix")
		var w Writer
		w.Reset(bytes.Clone(prefix))
		for _, r := range in {
			size := w.Len()
			if err := w.Append(&r); err != nil {
				t.Fatal(err)
			}
			if added := w.Len() - size; added > r.Size() {
				t.Fatalf("%d bytes, of at most %d", added, r.Size())
			}
		}
		if !bytes.HasPrefix(w.Bytes(), prefix) || len(w.Bytes()) != len(prefix)+w.Len() {
			t.Fatalf("%x stood before the frame, %x is what there is", prefix, w.Bytes())
		}
		out, err := read(w.Bytes()[len(prefix):])
		if diff := cmp.Diff(in, out, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Record{}, "Same")); diff != "" || err != nil {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}

// drawRecord draws few names, so that records repeat those of the record before.
func drawRecord(t *rapid.T) Record {
	name := rapid.SampledFrom([]string{"a", "b", "ä", strings.Repeat("n", MaxName)})
	pid := func() PID {
		return PID{
			Address: rapid.SampledFrom([]string{"", "far:1"}).Draw(t, "address"), ID: name.Draw(t, "id"),
			Request: rapid.SampledFrom([]uint32{0, 1, math.MaxUint32}).Draw(t, "request"),
		}
	}
	r := Record{Kind: Kind(rapid.IntRange(int(KindGoodbye), int(kinds-1)).Draw(t, "kind"))}
	has := parts[r.Kind]
	if has&hasTarget != 0 {
		r.Target, r.TargetRequest = name.Draw(t, "target"), pid().Request
	}
	if has&hasSender != 0 && (has&wantSender != 0 || rapid.Bool().Draw(t, "somebody")) {
		r.Sender = pid()
	}
	if has&hasType != 0 {
		r.Type = rapid.SampledFrom([]string{"x.T", strings.Repeat("t", MaxType)}).Draw(t, "type")
	}
	if has&hasBody != 0 {
		r.Body = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")
		for i := range rapid.SampledFrom([]int{0, 0, 1, MaxPairs}).Draw(t, "pairs") {
			r.Header = append(r.Header, Pair{fmt.Sprint(i), rapid.SampledFrom([]string{"", "v", "ä"}).Draw(t, "value")})
		}
	}
	if has&hasSeq != 0 {
		r.Seq = rapid.Uint64().Draw(t, "seq")
	}
	if has&hasCode != 0 {
		r.Code = Code(rapid.Byte().Draw(t, "code"))
	}
	if has&hasReason != 0 {
		r.Reason = rapid.SampledFrom([]string{"", "because", strings.Repeat("r", MaxReason)}).Draw(t, "reason")
	}
	return r
}

// A Writer refuses a record that a Reader would refuse, and leaves the frame unchanged.
func TestRefusedToWrite(t *testing.T) {
	long := strings.Repeat("x", MaxName+1)
	user := func(change func(*Record)) Record {
		r := Record{Kind: KindUser, Target: "t", Sender: PID{ID: "s"}, Type: "x.T", Body: []byte("body")}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		r     Record
		part  string
		cause error
	}{
		"kind 0":               {Record{}, "kind", ErrMalformed},
		"kind 15":              {Record{Kind: 15}, "kind", ErrMalformed},
		"kind 99":              {Record{Kind: 99}, "kind", ErrMalformed},
		"no hello":             {Record{Kind: KindHello}, "hello", ErrMalformed},
		"a hello behind":       {Record{Kind: KindHello, Hello: &Hello{Name: "a", MaxMessage: 1}}, "hello", ErrMalformed},
		"no target":            {user(func(r *Record) { r.Target = "" }), "target", ErrMalformed},
		"long target":          {user(func(r *Record) { r.Target = long }), "target", ErrTooLong},
		"target not UTF-8":     {user(func(r *Record) { r.Target = "\xff" }), "target", ErrMalformed},
		"long sender":          {user(func(r *Record) { r.Sender.ID = long }), "sender", ErrTooLong},
		"long address":         {user(func(r *Record) { r.Sender.Address = long }), "address", ErrTooLong},
		"no type":              {user(func(r *Record) { r.Type = "" }), "type", ErrMalformed},
		"long type":            {user(func(r *Record) { r.Type = long[:MaxType+1] }), "type", ErrTooLong},
		"type not UTF-8":       {user(func(r *Record) { r.Type = "\xff" }), "type", ErrMalformed},
		"many pairs":           {user(func(r *Record) { r.Header = make([]Pair, MaxPairs+1) }), "header", ErrTooLong},
		"long header":          {user(func(r *Record) { r.Header = []Pair{{"k", strings.Repeat("v", MaxHeader)}} }), "header", ErrTooLong},
		"header not UTF-8":     {user(func(r *Record) { r.Header = []Pair{{"k", "\xff"}} }), "header", ErrMalformed},
		"nobody watches":       {Record{Kind: KindWatch, Target: "a"}, "sender", ErrMalformed},
		"nobody is watched":    {Record{Kind: KindWatch, Sender: PID{ID: "a"}}, "target", ErrMalformed},
		"nobody has ended":     {Record{Kind: KindTerminated, Target: "a"}, "sender", ErrMalformed},
		"spawn without a kind": {Record{Kind: KindSpawn}, "type", ErrMalformed},
	} {
		var w Writer
		w.Reset([]byte("before"))
		first := Record{Kind: KindStop, Target: "first"}
		if err := w.Append(&first); err != nil {
			t.Fatal(err)
		}
		before := bytes.Clone(w.Bytes())
		err := w.Append(&c.r)
		var e *Error
		if !errors.As(err, &e) || e.Part != c.part || !errors.Is(err, c.cause) || !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.Append(&first); err != nil || !bytes.Equal(w.Bytes()[:len(before)], before) || len(w.Bytes()) != len(before)+1 {
			t.Errorf("%s: the frame has become %x", name, w.Bytes())
		}
	}
	for name, h := range map[string]Hello{
		"no name": {MaxMessage: 1}, "no size": {Name: "a"}, "too large": {Name: "a", MaxMessage: MaxMessage + 1},
		"long name": {Name: long, MaxMessage: 1}, "long member": {Name: "a", Member: long, MaxMessage: 1},
		"not UTF-8": {Name: "\xff", MaxMessage: 1},
	} {
		var w Writer
		if err := w.Append(&Record{Kind: KindHello, Hello: &h}); err == nil {
			t.Errorf("a hello, %s: written as %x", name, w.Bytes())
		}
	}
}

// A reason is cut, not refused: it is for people, and an end must be reported in any case.
func TestReasonIsCut(t *testing.T) {
	for in, want := range map[string]string{
		strings.Repeat("ä", MaxReason):               strings.Repeat("ä", MaxReason/2),
		"x" + strings.Repeat("ä", MaxReason):         "x" + strings.Repeat("ä", MaxReason/2-1),
		"\xff is what a peer may get a codec to say": "? is what a peer may get a codec to say",
	} {
		got, err := read(write(t, []Record{{Kind: KindGoodbye, Reason: in}}))
		if err != nil || len(got) != 1 || got[0].Reason != want {
			t.Errorf("%.20q came as %+v, %v", in, got, err)
		}
	}
}

// The next record never refers to one that was refused.
func TestRefusedIsForgotten(t *testing.T) {
	records := []Record{
		{Kind: KindUser, Target: "a", Sender: PID{ID: "s"}, Type: "x.T"},
		{Kind: KindUser, Target: "b", Sender: PID{ID: "r"}, Type: "y.T"},
	}
	var w Writer
	for i := range 6 {
		other := records[(i+1)%2]
		other.Type = ""
		if err := w.Append(&other); !errors.Is(err, ErrMalformed) {
			t.Fatalf("without a type: %v", err)
		}
		if err := w.Append(&records[i/3]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := read(w.Bytes())
	if err != nil || len(got) != 6 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, r := range got {
		if want := records[i/3]; r.Target != want.Target || r.Sender != want.Sender || r.Type != want.Type {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

// A Hello of a later version is read as far as all versions agree.
func TestHelloOfALaterVersion(t *testing.T) {
	b := write(t, goldens[0].records)
	want := *goldens[0].records[0].Hello
	b[3], want.Version = 9, 9
	got, err := read(append(b, "and what it adds"...))
	if err != nil || len(got) != 1 || *got[0].Hello != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// append to a Body does not reach the record behind it.
func TestBodiesAreTheirOwn(t *testing.T) {
	b := write(t, goldens[4].records)
	d := NewReader(b, nil)
	var r Record
	if _, err := d.Next(&r); err != nil {
		t.Fatal(err)
	}
	before := bytes.Clone(b)
	_ = append(r.Body, "more"...)
	if !bytes.Equal(b, before) {
		t.Error("an append to a body has overwritten the next record")
	}
}

// Names gives each name as it is, whatever was remembered before.
func TestNames(t *testing.T) {
	var n Names
	for i := range 5_000 {
		want := fmt.Sprintf("name-%d-%s", i%700, strings.Repeat("x", i%200))
		if got, ok := n.internText([]byte(want)); !ok || got != want {
			t.Fatalf("%q became %q, %v", want, got, ok)
		}
	}
	for range 2 {
		if got, ok := n.internText([]byte("\xff")); ok {
			t.Errorf("%q is no name", got)
		}
	}
	for _, set := range n.sets {
		for _, s := range set {
			if len(s) > rememberable {
				t.Errorf("%d bytes were remembered", len(s))
			}
		}
	}
}

func write(t *testing.T, records []Record) []byte {
	t.Helper()
	var w Writer
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	return w.Bytes()
}

// read reads all records. Each gets its own Header.
func read(b []byte) (all []Record, err error) {
	var names Names
	d := NewReader(b, &names)
	for {
		var r Record
		ok, err := d.Next(&r)
		if !ok {
			return all, err
		}
		all = append(all, r)
	}
}

// Of the names that share a place the one that was read last is kept.
func TestTheLatestNamesAreKept(t *testing.T) {
	var n Names
	n.internText([]byte("first"))
	place := func(name string) uint64 { return maphash.Bytes(n.seed, []byte(name)) % uint64(len(n.sets)) }
	var same []string
	for i := 0; len(same) < len(n.sets[0])+1; i++ {
		if name := fmt.Sprint("name-", i); place(name) == 0 {
			same = append(same, name)
		}
	}
	last := len(same) - 1
	for _, name := range append(same[:last:last], same[0], same[last]) {
		n.internText([]byte(name))
	}
	if set := n.sets[0][:]; !slices.Contains(set, same[0]) || slices.Contains(set, same[1]) {
		t.Errorf("kept are %q of %q", set, same)
	}
}

// A PID without an ID is empty, whatever its address.
func TestNobodyIsNobody(t *testing.T) {
	b := write(t, []Record{
		{Kind: KindUser, Target: "t", Type: "x.T", Sender: PID{Address: "a"}},
		{Kind: KindUser, Target: "t", Type: "x.T", Sender: PID{Address: "b", Request: 1}},
	})
	got, err := read(b)
	if err != nil || len(got) != 2 || got[0].Sender != (PID{}) || got[1].Same != SameTarget|SameSender|SameType {
		t.Errorf("%+v, %v", got, err)
	}
}
