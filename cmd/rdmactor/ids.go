package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/compare"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/kernel"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
	"github.com/rdmactor/rdmactor/internal/plain"
)

// listIDs runs the command ids.
func listIDs(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseIDs(args, stdout)
	if err != nil {
		return err
	}
	var rows []page.Row
	if o.address != "" {
		if rows, err = o.pageRows(ctx, stderr); err != nil {
			return err
		}
		if !o.kernel {
			return printList(stdout, o.json, rows, func(w io.Writer, rows []page.Row) { programTable(w, rows, o.sort) })
		}
	}
	ids, err := o.kernelIDs(stderr)
	if err != nil {
		return err
	}
	if !o.kernel {
		ids = slices.DeleteFunc(ids, func(i kernel.ID) bool { return !i.Has(o.filter) })
		return printList(stdout, o.json, ids, kernelTable)
	}
	devices, err := kernel.Devices()
	if err != nil {
		return err
	}
	pairs := compare.Join(rows, ids, devices)
	pairs = slices.DeleteFunc(pairs, func(p compare.Pair) bool { return !o.matchesFilter(p) })
	return printList(stdout, o.json, pairs, pairTable)
}

// pageRows returns the identifiers of the page.
func (o *idsFlags) pageRows(ctx context.Context, stderr io.Writer) ([]page.Row, error) {
	c, err := page.Open(o.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	q := page.Query{States: o.state, Sort: o.sort, Descending: o.desc}
	if !o.kernel { // identifiers that the filter removes would seem to be the kernel's alone
		q.Text = o.filter
	}
	rows, complete, err := c.All(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	if !complete {
		fmt.Fprintf(stderr, "there are more: the first %d\n", len(rows))
	}
	return rows, nil
}

// kernelIDs returns the identifiers of the kernel.
func (o *idsFlags) kernelIDs(stderr io.Writer) ([]kernel.ID, error) {
	ids, steady, err := kernel.IDs()
	if err != nil {
		return nil, fmt.Errorf("%w: rdmactor ids HOST:PORT prints a program's identifiers, rdmactor doctor what this host lacks", err)
	}
	if !steady {
		fmt.Fprintln(stderr, "the kernel's table changed while it was read: an identifier may be missing, or there twice")
	}
	if o.pid != 0 {
		ids = slices.DeleteFunc(ids, func(i kernel.ID) bool { return uint(i.Process) != o.pid })
	}
	if o.kernel || o.sort == "" {
		return ids, kernel.Order(ids, "ifname", !o.kernel && o.desc)
	}
	return ids, kernel.Order(ids, o.sort, o.desc)
}

// matchesFilter reports whether a pair contains the filter's text.
func (o *idsFlags) matchesFilter(p compare.Pair) bool {
	if strings.Contains(string(p.Who), o.filter) {
		return true
	}
	for i := range p.Kernel {
		if p.Kernel[i].Has(o.filter) {
			return true
		}
	}
	r, what := p.Program, strings.ToLower(o.filter)
	return r != nil && slices.ContainsFunc(
		[]string{r.PID, r.State, r.Peer, r.Local, r.Device, r.Loop, r.Owner, r.Wire, r.Waiting, r.Identity, strconv.FormatUint(r.ID, 10)},
		func(text string) bool { return strings.Contains(strings.ToLower(text), what) })
}

// printList prints a list as JSON, or as a table.
func printList[T any](w io.Writer, asJSON bool, list []T, table func(io.Writer, []T)) error {
	if asJSON {
		if list == nil {
			list = []T{}
		}
		return plain.WriteJSON(w, list)
	}
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	table(out, list)
	return out.Flush()
}

// printRow writes a row of a table.
func printRow(w io.Writer, cells ...string) {
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// programTable adds a column for the field that it is sorted by, if no other column shows it, and
// one for identities, if there are any.
func programTable(w io.Writer, rows []page.Row, sorted string) {
	titles := []string{
		"ID", "STATE", "TROUBLE", "FOR", "DEVICE", "LOCAL", "PEER", "LOOP", "QUEUED", "CREDITS", "WAITS", "SENT", "RECEIVED", "MEMORY", "WAITING", "PID",
	}
	named := slices.ContainsFunc(rows, func(r page.Row) bool { return r.Identity != "" })
	if named {
		titles = append(titles, "IDENTITY")
	}
	further := sorted != "" && !slices.Contains(programFields, sorted) && (!named || sorted != "identity")
	if further {
		titles = append(titles, strings.ToUpper(plain.Text(sorted)))
	}
	printRow(w, titles...)
	for i := range rows {
		r := &rows[i]
		cells := programCells(r)
		if named {
			cells = append(cells, plain.Or(r.Identity))
		}
		if further {
			cells = append(cells, plain.Or(r.Text(sorted)))
		}
		printRow(w, cells...)
	}
}

// programFields are the fields in programTable's columns.
var programFields = []string{
	"id", "state", "trouble", "in_state_seconds", "device", "local", "peer", "loop", "queued_messages", "credits_send_messages",
	"waits_for_seconds", "sent_messages", "received_messages", "memory_bytes", "waiting", "pid",
}

func programCells(r *page.Row) []string {
	return []string{
		formatID(r.ID), plain.Or(r.State), plain.Or(r.Trouble), plain.Duration(r.InState), plain.Or(r.Device), plain.Or(r.Local), plain.Or(r.Peer),
		plain.Or(r.Loop), strconv.FormatInt(r.Queued, 10), strconv.FormatInt(r.Send, 10), plain.Duration(r.WaitsFor),
		strconv.FormatUint(r.Sent, 10), strconv.FormatUint(r.Received, 10), plain.Bytes(float64(r.Memory)), plain.Or(r.Waiting),
		plain.Or(r.PID),
	}
}

// formatID returns an identifier's number, or a hyphen if it has none yet.
func formatID(id uint64) string {
	if id == 0 {
		return "-"
	}
	return strconv.FormatUint(id, 10)
}

func kernelTable(w io.Writer, ids []kernel.ID) {
	printRow(w, "DEVICE", "CM-IDN", "LQPN", "TYPE", "STATE", "PS", "PID", "COMMAND", "LOCAL", "PEER")
	for i := range ids {
		k := &ids[i]
		printRow(w, deviceOf(k), strconv.FormatUint(uint64(k.CMIDN), 10), formatID(uint64(k.LQPN)), plain.Or(k.Type), plain.Or(k.State), plain.Or(k.PS),
			formatID(uint64(k.Process)), plain.Or(k.Command), plain.Or(k.Local.String()), plain.Or(k.Peer.String()))
	}
}

// deviceOf returns the device and its port: rxe0/1.
func deviceOf(k *kernel.ID) string {
	if k.Port == 0 {
		return plain.Or(k.Device)
	}
	return plain.Or(k.Device) + "/" + strconv.FormatUint(uint64(k.Port), 10)
}

func pairTable(w io.Writer, pairs []compare.Pair) {
	printRow(w, "WHO", "ID", "STATE", "KERNEL", "DEVICE", "LOCAL", "PEER", "LQPN", "PID", "COMMAND")
	for i := range pairs {
		p := &pairs[i]
		cells := []string{string(p.Who), "-", "-", "-", "-", "-", "-", "-", "-", "-"}
		if r := p.Program; r != nil {
			cells[1], cells[2], cells[4], cells[5], cells[6] = formatID(r.ID), plain.Or(r.State), plain.Or(r.Device), plain.Or(r.Local), plain.Or(r.Peer)
		}
		if len(p.Kernel) == 0 {
			printRow(w, cells...)
		}
		for n := range p.Kernel {
			k := &p.Kernel[n]
			cells[3], cells[4], cells[7] = plain.Or(k.State), deviceOf(k), formatID(uint64(k.LQPN))
			cells[8], cells[9] = formatID(uint64(k.Process)), plain.Or(k.Command)
			if p.Program == nil {
				cells[5], cells[6] = plain.Or(k.Local.String()), plain.Or(k.Peer.String())
			}
			printRow(w, cells...)
		}
	}
}
