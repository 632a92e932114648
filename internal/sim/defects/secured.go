package main

import "github.com/rdmactor/rdmactor/internal/overlay"

const records = "actor/internal/secure/records.go"

// securedDefects are invented ones of secured connections.
var securedDefects = []defect{
	{
		name: "tag-not-checked", layer: invention, workload: "connections", within: 3000,
		was: "What somebody on the path has changed is delivered.",
		edits: []overlay.Edit{edit(records,
			"	plaintext, err := o.aead.Open(dst, nonce, sealed, nil)\n	if err != nil {\n		o.failed = &TamperedError{\"a message\"}\n		return nil, o.failed\n	}\n",
			"	text := o.aead.Seal(nil, nonce, sealed[:len(sealed)-Overhead], nil)\n	plaintext := append(dst, text[:len(text)-Overhead]...)\n")},
	},
	{
		name: "sequence-not-checked", layer: invention,
		was: "A message that somebody on the path repeats is delivered again.",
		edits: []overlay.Edit{edit(records,
			"nonceLen-8:]) ^ d.records\n", "nonceLen-8:])\n")},
	},
	{
		name: "owner-hears-first", layer: invention, workload: "connections", within: 20,
		was: "Owners hear of peers that are not authenticated.",
		edits: []overlay.Edit{edit("actor/handshakeserver.go",
			"	if hand.established == nil || hand.first == nil || it.conn.Over() {\n", "	if hand.established == nil || it.conn.Over() {\n")},
	},
	{
		name: "one-sided-unasked", layer: invention, workload: "connections", within: 60,
		was: "A secured connection's memory is granted, although nothing protects it and nobody has allowed that.",
		edits: []overlay.Edit{edit("actor/security.go",
			"	if c.secured() && rights&remoteRights&^c.Security.AllowOneSided != 0 {\n", "	if c.secured() && rights == 0 {\n")},
	},
}
