//go:build chromium

package main

import (
	"flag"
	"fmt"
	"testing"

	"github.com/rdmactor/rdmactor/examples/live"
	"github.com/rdmactor/rdmactor/internal/chromium"
)

var pictures = flag.Bool("pictures", false, "write the pictures in docs")

const secret = "a token of a test"

// TestChromiumKV: an operator looks at a store under load, finds the connection of a watcher, and
// disconnects it. The watcher reconnects, and the load is not interrupted.
func TestChromiumKV(t *testing.T) {
	t.Setenv(live.Token, secret)
	server, at, url := startInspected(t)
	watch := start(t, "watch", "alarm/", "--addr", at)
	output(t, "put", "alarm/a", "1", "--addr", at)
	watch.out.await(t, "alarm/a")
	load := start(t, "load", "--addr", at, "--callers", "16", "--duration", "5m")

	b := chromium.Look(t, url, 1180, 380)
	b.Press(`#tabs a[href="#/ids"]`)
	b.Want(`document.querySelectorAll("main tbody tr").length === 3`) // one is the listener
	for _, order := range []string{"ascending", "descending"} {       // the busiest is first
		b.Press("th[data-name=sent_messages] button")
		b.Want(`document.querySelector("th[data-name=sent_messages]").getAttribute("aria-sort") === "` + order + `"`)
	}
	cell := func(row int, name string) string {
		return fmt.Sprintf(`document.querySelectorAll("main tbody tr")[%d].cells[[...document.querySelectorAll("th")].findIndex(h => h.dataset.name === "%s")]`, row, name)
	}
	b.Want(cell(2, "state") + `.textContent === "listening"`)
	watcher := chromium.Get[string](b, cell(1, "id")+".textContent")
	b.Press(`main tbody tr a`)
	sent := `Number([...document.querySelectorAll("main dl div")].find(d => d.title.startsWith("sent_messages: ")).title.split(" ")[1])`
	b.Want(`document.querySelector("main dl div")`)
	n := chromium.Get[int](b, sent)
	b.Want(fmt.Sprintf("%s > %d", sent, n+100))

	b.Must(b.Eval(`location.hash = "#/ids/`+watcher+`"`, nil))
	b.Want(`document.getElementById("title").textContent === "identifier ` + watcher + `: connected"`)
	b.Act("disconnect", secret)
	watch.log.await(t, "trying again")
	output(t, "put", "alarm/b", "2", "--addr", at)
	watch.out.await(t, "alarm/b")
	b.Press(`#tabs a[href="#/sections/store"]`)
	// a cell's title has the exact value after a mouseover
	const exactly = `(td => { td.dispatchEvent(new MouseEvent("mouseover", { bubbles: true })); return Number(td.title.split(" ")[0]); })`
	revision := exactly + `(document.querySelectorAll("main tbody td")[2])`
	b.Want(`document.querySelectorAll("main tbody td").length === 6`)
	n = chromium.Get[int](b, revision)
	b.Want(fmt.Sprintf("%s > %d", revision, n+100)) // the load continues
	b.Press(`#tabs a[href="#/sections/methods"]`)
	b.Want(`document.querySelector("th[data-name=p99_seconds]")`)
	get := func(column string) string {
		return exactly + `([...document.querySelectorAll("main tbody tr")].find(r => r.cells[0].textContent === "kv.Store/Get").cells[[...document.querySelectorAll("th")].
			findIndex(h => h.dataset.name === "` + column + `")])`
	}
	n = chromium.Get[int](b, get("ok"))
	b.Want(fmt.Sprintf("%s > %d && %s > 100 && %s > 0", get("ok"), n+100, get("per_second"), get("p99_seconds")))
	if *pictures {
		b.Save("../../docs/inspect-kv.png", false)
	}
	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complains: %q", errs)
	}
	server.log.await(t, "an operator has acted")
	for _, p := range []*started{load, watch, server} {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	}
}
