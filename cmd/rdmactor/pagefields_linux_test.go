package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/iwarp"
)

// missing returns the JSON names of the fields of a struct, and of its lists' elements, that an
// answer lacks.
func missing(t reflect.Type, answer any) (names []string) {
	object, ok := answer.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("an object instead of %v", answer)}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		value, has := object[name]
		switch {
		case f.Anonymous:
			names = append(names, missing(f.Type, answer)...)
		case !has && name != "blocked": // present only if a loop is blocked
			names = append(names, name)
		case f.Type.Kind() == reflect.Slice:
			list, _ := value.([]any)
			if len(list) == 0 {
				names = append(names, "an element of "+name)
				continue
			}
			names = append(names, missing(f.Type.Elem(), list[0])...)
		}
	}
	return names
}

// TestFields: every field that is read here is a field of package inspect.
func TestFields(t *testing.T) {
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	defer sys.Shutdown()
	rt, err := rdma.Open(sys, rdma.Config{Device: iwarp.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := rt.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	owner := sys.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, rt.OnLoop()))
	on, err := rdma.Ask[*rdma.Listening](t.Context(), rt, rt.CreateID(owner), &rdma.Serve{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := inspect.New(rt)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(shown)
	defer server.Close()
	defer shown.Close()
	c, err := page.Open(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rows, _, err := c.All(t.Context(), page.Query{})
	if err != nil || len(rows) != 1 || rows[0].State != "listening" || rows[0].Local != on.Local.String() {
		t.Fatalf("%+v, %v", rows, err)
	}
	one, err := c.ID(t.Context(), rows[0].PID)
	if err != nil || one.ID != rows[0].ID || len(one.History) == 0 {
		t.Errorf("%+v, %v", one, err)
	}
	o, err := c.Overview(t.Context())
	if err != nil || o.Total != 1 || len(o.Loops) == 0 || len(o.Memory) == 0 || o.Interval != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	for path, read := range map[string]any{"": o, "ids": page.IDs{}, "ids/" + one.PID: one} {
		resp, err := server.Client().Get(server.URL + "/debug/rdma/" + path)
		if err != nil {
			t.Fatal(err)
		}
		var answer any
		err = json.NewDecoder(resp.Body).Decode(&answer)
		_ = resp.Body.Close()
		if names := missing(reflect.TypeOf(read), answer); err != nil || len(names) > 0 {
			t.Errorf("%q has no %v, %v", path, names, err)
		}
	}
}
