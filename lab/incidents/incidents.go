package main

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
)

// incident describes an incident.
type incident struct {
	about, look   string
	trouble, calm string // printed when it begins
	config        rdma.Config
	id            rdma.IDConfig // the listener's
	parties       []string
	crowd         int // additional clients
	serve         func(h *host, ctx actor.Context)
	clients       func(s *stage)
	begin         func(s *stage) // nil: the parties check the stage's state themselves
}

// others are the clients that must stay unaffected.
var others = []string{"ann", "bob", "eve", "zoe"}

const (
	shortMemory = 8 << 20
	crowdSize   = 600
)

// goneAfter is shorter than the default of 45 s, to shorten the wait.
var goneAfter = rdma.Keepalive{Idle: time.Second, Gone: 3 * time.Second}

var incidents = map[string]incident{
	"slow-reader": {
		about:   "the server publishes 400 messages a second to each of five clients, and one of them reads four",
		look:    "Identifiers (the first row), and Clients",
		trouble: "mallory reads four messages a second",
		calm:    "mallory reads as fast as the others",
		parties: append([]string{"mallory"}, others...),
		serve:   (*host).publishLines,
		clients: func(s *stage) {
			s.joinClients(s.clients, (*client).readSlowly, "mallory")
			s.joinClients(s.clients, (*client).countReceived, others...)
		},
	},
	"memory-short": {
		about:   "the server keeps what six clients upload, and has 8 MiB to receive into",
		look:    "Memory (receive: waiting connections), Identifiers (the first rows), and Clients",
		trouble: "the server consumes no uploads",
		calm:    "the server consumes uploads",
		config:  rdma.Config{Limits: rdma.Limits{ReceiveMemory: shortMemory}},
		parties: append([]string{"upload-1", "upload-2", "upload-3", "upload-4", "upload-5", "upload-6"}, others...),
		serve: func(h *host, ctx actor.Context) {
			if h.isUploader() {
				h.consumeUploads(ctx)
			} else {
				h.echoMessages(ctx)
			}
		},
		clients: func(s *stage) {
			s.joinClients(s.clients, (*client).sendUploads, "upload-1", "upload-2", "upload-3", "upload-4", "upload-5", "upload-6")
			s.joinClients(s.clients, (*client).sendRequest, others...)
		},
	},
	"blocked-loop": {
		about:   "an actor waits on one of the server's two loops",
		look:    "Loops (blocked, blocked by), and Clients: those of the other loop continue",
		trouble: "the actor that serves mallory waits on its loop",
		calm:    "no actor waits",
		config:  rdma.Config{Loops: make([]eventloop.Config, 2)},
		parties: append([]string{"mallory"}, others...),
		serve: func(h *host, ctx actor.Context) {
			if h.party.name == "mallory" {
				h.blockLoop(ctx)
			} else {
				h.echoMessages(ctx)
			}
		},
		clients: func(s *stage) { s.joinClients(s.clients, (*client).sendRequest, s.parties.clientNames()...) },
	},
	"peer-gone": {
		about:   "a client's machine stops",
		look:    "Identifiers (the first row, until it has gone), Flight recorder (kind end), and Clients",
		trouble: "mallory's machine stops",
		calm:    "mallory's machine resumes",
		id:      rdma.IDConfig{Keepalive: goneAfter},
		parties: append([]string{"mallory"}, others...),
		serve:   (*host).publishLines,
		clients: func(s *stage) {
			s.joinClients(s.far, (*client).countReceived, "mallory")
			s.joinClients(s.clients, (*client).countReceived, others...)
		},
		begin: func(s *stage) { s.freezeClients(s.far) },
	},
	"storm": {
		about:   "600 clients lose their connections at the same time, and return",
		look:    "Listeners (requests, pending), Dials, and Clients",
		trouble: "600 clients lose their connections at the same time",
		calm:    "they are connected again",
		parties: others,
		crowd:   crowdSize,
		serve:   (*host).echoMessages,
		clients: func(s *stage) {
			s.joinClients(s.clients, (*client).sendRequest, others...)
			s.gatherCrowd(crowdSize)
		},
		begin: (*stage).hangUp,
	},
}
