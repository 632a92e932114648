package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

// A program shows its runtime, and one of its tables, on a port that only operators reach.
func Example() {
	system := actor.NewActorSystem()
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Shutdown(context.Background())

	type room struct {
		Name    string
		Members int
	}
	rooms := func() []room { return []room{{"lobby", 3}, {"attic", 0}} } // or remoting's Node.Peers
	page, err := inspect.New(rt, inspect.Config{Sections: []inspect.Section{inspect.Rows("rooms", "Rooms", rooms)}})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/rdma/", page)
	server := httptest.NewUnstartedServer(mux) // in a program: http.Server
	server.Config.RegisterOnShutdown(page.Close)
	server.Start()
	defer server.Close()

	resp, err := server.Client().Get(server.URL + "/debug/rdma/sections/rooms?format=text")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n")
	fmt.Print(table)
	// Output:
	// name   members
	// lobby  3
	// attic  0
}

// The tables of the packages are sections, too, in one line each: the calls of rpc, the links of
// reconnecting actors, and the peers of remoting.
func ExampleRows() {
	quiet := slog.New(slog.DiscardHandler)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }))
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.Config{Device: iwarp.New(), Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer rt.Shutdown(ctx)
	server := rpc.NewServer(rt)
	defer server.Close()
	node, err := remoting.Start(rt, remoting.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Shutdown(ctx)

	page, err := inspect.New(rt, inspect.Config{Sections: []inspect.Section{
		inspect.Rows("methods", "Methods", server.Inspect),
		inspect.Rows("links", "Links", func() []reconnect.LinkInfo { return reconnect.Links(rt) }),
		inspect.Rows("peers", "Peers", node.Peers),
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()

	for _, name := range []string{"methods", "links", "peers"} {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/debug/rdma/sections/"+name+"?format=json", nil))
		var table struct{ Columns []string }
		if err := json.Unmarshal(w.Body.Bytes(), &table); err != nil {
			log.Fatal(err)
		}
		fmt.Println(name+":", strings.Join(table.Columns[:5], ", "))
	}
	// Output:
	// methods: method, per_second, p50_seconds, p99_seconds, in_flight
	// links: addr, state, since, failed, next_try
	// peers: peer_name, peer_member, peer_incarnation, peer_at, peer_identity
}
