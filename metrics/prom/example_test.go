package prom_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/metrics"
	"github.com/rdmactor/rdmactor/metrics/prom"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/rpc"
)

// member stands for a pacluster.Member.
var member noCluster

type noCluster struct{}

func (noCluster) Counts() metrics.Cluster { return metrics.Cluster{Members: 1} }

// The metrics of a runtime, a node, a server and a client; and how such a program ends.
func ExampleNew() {
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New()})
	if err != nil {
		log.Fatal(err)
	}
	node, err := remoting.Start(rt, remoting.Config{Listen: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	server := rpc.NewServer(rt)
	addr, err := server.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	client := rpc.NewClient(rt, addr.String())
	registry := prometheus.NewRegistry()

	registry.MustRegister(prom.New(metrics.New(metrics.Config{
		Runtime: rt,
		Node:    node,
		Cluster: member.Counts, // of remoting/pacluster
		Servers: func() []*rpc.Server { return []*rpc.Server{server} },
		Clients: func() []*rpc.Client { return []*rpc.Client{client} },
	})))
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	answer := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "rdmactor_loop_blocked") || strings.HasPrefix(line, "rdmactor_cluster_members") {
			fmt.Print(line)
		}
	}

	client.Close()
	fmt.Println(shutDown(server, node, rt))
	// Output:
	// rdmactor_cluster_members 1
	// rdmactor_loop_blocked{loop="rdma-0"} 0
	// <nil>
}

// shutDown ends a program, as docs/operating.md describes.
func shutDown(server *rpc.Server, node *remoting.Node, rt *rdma.Runtime) error {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	err := errors.Join(server.Shutdown(ctx), node.Shutdown(ctx), rt.Shutdown(ctx))
	return err
}
