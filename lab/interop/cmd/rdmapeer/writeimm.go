package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// The immediate data of a Write, by its sender.
const (
	immOfClient = 0xdeadbeef
	immOfServer = 0x01020304
)

// keyLen is the length of a key in private data: address, key, size.
const keyLen = 16

// writeImm is the counterpart of interoptest's testdata/writeimm.c. Client and server write into
// each other's memory with immediate data, the client first.
func writeImm(f *flag.FlagSet) func(h *host) {
	bind := f.String("b", "", "`ADDR` to listen on")
	server := f.String("s", "", "`ADDR` of the server; without it be the server")
	port := f.String("p", "7471", "`PORT`; a server takes a free one for 0")
	size := f.Int("S", 100, "`BYTES` of a Write")
	return func(h *host) {
		w := writer{host: h, size: *size}
		if *server == "" {
			w.runServer(*bind, *port)
		} else {
			w.runClient(*server, *port)
		}
		fmt.Fprintf(h.out, "writeimm: end %d\n", h.finalStatus())
	}
}

type writer struct {
	*host
	size int
}

func (w *writer) runServer(bind, port string) {
	w.startListener(bind, port, cmid.PortSpaceTCP, func(e *peer) error {
		own, err := w.offerMemory(e, immOfClient)
		if err != nil {
			return err
		}
		return e.ID.Accept(own, nil)
	})
	w.awaitConnections(1)
	w.awaitMessages("receiving", 1, 0)
	w.eachPeer(func(e *peer) error {
		return w.writeWithImm(e, e.seen[states.KindConnectRequest].(*cmid.ConnectRequest).PrivateData, immOfServer)
	})
	w.awaitMessages("writing", 1, 1)
	w.awaitDisconnects()
}

func (w *writer) runClient(server, port string) {
	w.resolvePeers(1, cmid.Addr{}, w.lookUpAddr(server, port, cmid.PortSpaceTCP, false), cmid.PortSpaceTCP)
	w.eachPeer(func(e *peer) error {
		own, err := w.offerMemory(e, immOfServer)
		if err != nil {
			return err
		}
		return e.ID.Connect(own, nil)
	})
	w.awaitEvent("connecting", states.KindEstablished)
	w.eachPeer(func(e *peer) error {
		return w.writeWithImm(e, e.seen[states.KindEstablished].(*cmid.Established).PrivateData, immOfClient)
	})
	w.awaitMessages("exchanging", 1, 1)
	w.disconnectAll()
}

// offerMemory prepares a peer, and returns the key to the memory that the other side writes to with
// imm.
func (w *writer) offerMemory(e *peer, imm uint32) (key []byte, err error) {
	if err := e.setUpQueuePair(1, w.size); err != nil {
		return nil, err
	}
	to, err := e.Alloc(w.size, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		return nil, err
	}
	e.written = func(wc *verbs.WC) error { return wantWritten(wc, to.Bytes, imm) }
	key = binary.BigEndian.AppendUint64(nil, to.Addr)
	key = binary.BigEndian.AppendUint32(key, to.RKey)
	return binary.BigEndian.AppendUint32(key, uint32(w.size)), nil
}

// wantWritten checks a receive that the other side's Write has consumed, and its bytes.
func wantWritten(wc *verbs.WC, to []byte, imm uint32) error {
	if !wc.HasImm || wc.Imm != imm || int(wc.Bytes) != len(to) {
		return fmt.Errorf("%d bytes were written with %#x, want %d with %#x", wc.Bytes, wc.Imm, len(to), imm)
	}
	for i, b := range to {
		if want := byte(imm) + byte(i); b != want {
			return fmt.Errorf("byte %d is %#x, want %#x", i, b, want)
		}
	}
	return nil
}

// writeWithImm writes with imm to the memory of key. Byte i is imm + i.
func (w *writer) writeWithImm(e *peer, key []byte, imm uint32) error {
	if len(key) < keyLen {
		return errors.New("the other side has given no key")
	}
	if n := binary.BigEndian.Uint32(key[12:]); n != e.size {
		return fmt.Errorf("the other side has memory for %d bytes, not %d", n, e.size)
	}
	for i := range e.out.Bytes {
		e.out.Bytes[i] = byte(imm) + byte(i)
	}
	return e.postMessages(1, verbs.SendWR{
		Op: verbs.WriteWithImm, Imm: imm, RemoteAddr: binary.BigEndian.Uint64(key), RKey: binary.BigEndian.Uint32(key[8:]),
	})
}
