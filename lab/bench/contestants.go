package main

import "github.com/rdmactor/rdmactor/lab/contest"

// contestants maps names to all contestants. README.md describes each one.
var contestants = contest.Contestants{
	"verbs":      contest.Ours["verbs"],
	"actor":      contest.Ours["actor"],
	"rdmanet":    contest.Ours["rdmanet"],
	"net.Conn":   contest.Ours["net.Conn"],
	"crypto/tls": contest.Ours["crypto/tls"],
	"rpc":        {Serve: serveRPC, Dial: dialRPC},
	"rpc-onloop": {Serve: serveRPCOnLoop, Dial: dialRPC},
	"net/rpc":    {Serve: serveNetRPC, Dial: dialNetRPC},
	"grpc-go":    {Serve: serveGRPC, Dial: dialGRPC},
	stock:        {Serve: serveTyped, Dial: dialTyped},
	"netpoll":    {Serve: serveNetpoll, Dial: dialNetpoll},
}
