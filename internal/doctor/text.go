package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/rdmactor/rdmactor/internal/plain"
)

// WriteText writes the report as text.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	say := func(format string, args ...any) {
		fmt.Fprintln(&b, plain.Text(fmt.Sprintf(format, args...)))
	}
	say("%s; Linux %s, user %d", r.Program, r.Kernel, r.User)
	say("rdma_cm     %s", cmp.Or(r.CM.Error, r.CM.Path))
	say("modules     %s", cmp.Or(strings.Join(r.Modules, " "), "none of interest"))
	r.Library.printTo(say)
	say("limits      locked memory %s, open files %d", r.Limits.lockedText(), r.Limits.OpenFiles)
	for i := range r.Devices {
		say("")
		r.Devices[i].printTo(say)
	}
	say("")
	if len(r.Missing) == 0 {
		say("Nothing is missing.")
	} else {
		say("What is missing, the worst first:")
	}
	for i, m := range r.Missing {
		say("%3d. %s", i+1, m.What)
		say("     > %s", m.Way)
	}
	_, err := w.Write(b.Bytes())
	return err
}

type printer func(format string, args ...any)

func (l *Library) printTo(say printer) {
	switch {
	case l == nil:
		say("libibverbs  this program is linked without: only rxe and siw have a data path. With it: %s", strings.Trim(Linked, "`"))
	case l.Error != "":
		say("libibverbs  %s", l.Error)
	default:
		say("libibverbs  %s, drivers %s; it lists %s", l.File, cmp.Or(strings.Join(l.Drivers, " "), "none"),
			cmp.Or(strings.Join(l.Devices, " "), "no device"))
	}
}

func (l Limits) lockedText() string {
	switch {
	case l.LockedMemory == unlimited:
		return "unlimited"
	case l.MayLock:
		return fmt.Sprintf("%d bytes, which do not apply (CAP_IPC_LOCK)", l.LockedMemory)
	}
	return fmt.Sprintf("%d bytes", l.LockedMemory)
}

func (d *Device) printTo(say printer) {
	usable := "not usable"
	if d.Usable {
		usable = "usable"
	}
	say("%s: %s, by %s, %s", d.Name, usable, cmp.Or(d.Path, "nothing here"), cmp.Or(strings.Join(d.Addresses, " "), "no address"))
	say("  driver %s, %s, node GUID %s%s", plain.Or(d.Driver), cmp.Or(d.Transport, "unknown transport"), plain.Or(d.NodeGUID), withPrefix(", firmware ", d.Firmware)+
		withPrefix(", board ", d.Board)+withPrefix(", PCI ", d.PCI))
	say("  data path's file: %s", cmp.Or(d.File, "none"))
	if d.Error != "" {
		say("  %s", d.Error)
	}
	if c := d.Limits; c != nil {
		say("  at most %d queue pairs with %d outstanding, %d completion queues of %d, %d memory regions, messages of %d bytes",
			c.QueuePairs, c.Outstanding, c.CompletionQueues, c.Completions, c.MemoryRegions, c.Message)
		say("  %d Reads outstanding, %d bytes inline, atomics: %s, immediate data: %s, datagrams: %s", c.Reads, c.Inline, yesOrNo(c.Atomics),
			yesOrNo(c.Immediate), datagramText(c.Datagram))
	}
	for _, g := range d.Groups {
		say("  %s: %s is %d, %d are used", g.File, g.Resource, g.Max, g.Used)
	}
	for i := range d.Ports {
		d.Ports[i].printTo(say)
	}
}

func (p *Port) printTo(say printer) {
	say("  port %d: %s (%s), %s%s%s%s", p.Number, plain.Or(p.State), plain.Or(p.Physical), plain.Or(p.LinkLayer), withPrefix(", ", p.Rate), withPrefix(", ", p.Netdev),
		mtuText(p.MTU))
	for _, g := range p.GIDs {
		say("    GID %d: %s%s%s", g.Index, g.Address, withPrefix(", ", g.Type), withPrefix(", ", g.Netdev))
	}
	if p.Cut {
		say("    and more")
	}
}

func mtuText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" with MTU %d", n)
}

// withPrefix returns a text after another one, or nothing.
func withPrefix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func datagramText(n int) string {
	if n == 0 {
		return "no"
	}
	return fmt.Sprintf("of %d bytes", n)
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
