package main

import "github.com/rdmactor/rdmactor/internal/overlay"

const records = "actor/internal/secure/records.go"

// securedDefects are invented ones of secured connections.
var securedDefects = []defect{
	{
		name: "tag-not-checked", layer: invention, workload: "connections", within: 300,
		was: "What somebody on the path has changed is delivered.",
		edits: []overlay.Edit{edit(records,
			"	plaintext, err := o.aead.Open(dst, nonce, sealed, nil)\n	if err != nil {\n		o.failed = &TamperedError{\"a message\"}\n		return nil, o.failed\n	}\n",
			"	text := o.aead.Seal(nil, nonce, sealed[:len(sealed)-Overhead], nil)\n	plaintext := append(dst, text[:len(text)-Overhead]...)\n")},
	},
	{
		name: "sequence-not-checked", layer: invention, workload: "connections", within: 800,
		was: "A message that somebody on the path repeats is delivered again.",
		edits: []overlay.Edit{edit(records,
			"nonceLen-8:]) ^ d.records\n", "nonceLen-8:])\n")},
	},
	{
		name: "owner-hears-first", layer: invention, workload: "connections", within: 30,
		was: "Owners hear of peers that are not authenticated.",
		edits: []overlay.Edit{edit("actor/introduce.go",
			"	if hand.established == nil || hand.first == nil || it.conn.Over() {\n", "	if hand.established == nil || it.conn.Over() {\n")},
	},
	{
		name: "one-sided-unasked", layer: invention, workload: "connections", within: 60,
		was: "A secured connection's memory is granted, although nothing protects it and nobody has allowed that.",
		edits: []overlay.Edit{edit("actor/idconfig.go",
			"	if rights&remoteRights&^c.allowed() != 0 {\n", "	if c.secured() && rights == 0 {\n")},
	},
	{
		name: "addresses-not-bound", layer: invention, workload: "connections", within: 900,
		was: "A connection that somebody on the path makes to another listener is the dialled one's.",
		edits: []overlay.Edit{edit("actor/securing.go",
			"	if !it.cfg.Security.NoAddresses {\n", "	if it.cfg.Security == nil {\n")},
	},
	{
		name: "keys-of-the-identity", layer: invention, workload: "connections", within: 60,
		was: "Connections of one identity have the same keys, and what one has had is delivered on another.",
		edits: []overlay.Edit{
			edit("actor/internal/secure/noise.go", "expandLabel(sha256.New, initiator, \"traffic\", n.h[:], ", "expandLabel(sha256.New, n.psk[:], \"traffic\", nil, "),
			edit("actor/internal/secure/noise.go", "expandLabel(sha256.New, responder, \"traffic\", n.h[:], ", "expandLabel(sha256.New, n.psk[:], \"traffic back\", nil, "),
		},
	},
	{
		name: "listener-takes-any-mode", layer: invention, workload: "connections", within: 80,
		was: "A listener with a mode takes peers whose hello names none.",
		edits: []overlay.Edit{edit("actor/handshakeserver.go",
			"	if err := own.Same(peer, h.Version); err != nil {\n",
			"	if peer == 0 {\n		in.cfg.Security = nil\n		return true\n	}\n	if err := own.Same(peer, h.Version); err != nil {\n")},
	},
	{
		name: "client-takes-any-mode", layer: invention, workload: "connections", within: 300,
		was: "Who connects in a mode takes a reply whose hello names none.",
		edits: []overlay.Edit{edit("actor/handshakeclient.go",
			"	if err := it.finish(data); err != nil {\n",
			"	if h, user, ok := wire.ParseHello(data, it.id.Limits().Padded); ok && h.Features == 0 {\n"+
				"		it.conn.Agree(h, true, it.id.Limits().MaxMessage)\n"+
				"		ev.PrivateData, it.hand, it.who, it.cfg.Security = user, nil, \"\", nil\n"+
				"		it.opened(ev, answers)\n		return\n	}\n"+
				"	if err := it.finish(data); err != nil {\n")},
	},
}
