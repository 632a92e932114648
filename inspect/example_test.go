package inspect_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/iwarp"
)

// A program shows its runtime, and a table of its own, on a port that only operators reach.
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
