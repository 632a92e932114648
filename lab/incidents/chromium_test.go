//go:build chromium

package main

import (
	"flag"
	"fmt"
	"testing"

	"github.com/rdmactor/rdmactor/internal/chromium"
)

var pictures = flag.Bool("pictures", false, "write the pictures in docs")

// has returns a script that evaluates to whether a cell of the table's column contains the text.
func has(column, text string) string {
	return fmt.Sprintf(`(() => { const at = [...document.querySelectorAll("th")].findIndex(h => h.dataset.name === %q);
		return [...document.querySelectorAll("main tbody tr")].some(r => r.cells[at] && r.cells[at].textContent.includes(%q)); })()`, column, text)
}

// firstInTrouble is a script: an operator sees the trouble without sorting, scrolling or reading
// numbers. Of each row, the first eleven columns are on the screen.
const firstInTrouble = `document.querySelector("main tbody tr").classList.contains("trouble") &&
	[...document.querySelectorAll("main th")].slice(0, 11).every(h => h.getBoundingClientRect().right <= innerWidth)`

// hasCurves is a script: the curves of the last seconds are drawn.
const hasCurves = `document.querySelector("#totals path").getAttribute("d").split("L").length > 4`

// TestChromiumIncidents checks that the live page shows the symptoms of the operator's page. With
// -pictures it takes the pictures for docs.
func TestChromiumIncidents(t *testing.T) {
	for name, what := range map[string]struct {
		view   string // of the live page
		height int
		seen   string
	}{
		"slow-reader":  {"ids", 440, has("queued_messages", "256") + ` && ` + firstInTrouble + ` && ` + hasCurves},
		"memory-short": {"memory", 340, has("waiting_connections", "6") + ` && ` + firstInTrouble},
		"blocked-loop": {"loops", 220, has("blocked_by", "actor rdma$") + ` && ` + has("busy_share", "100")},
		"peer-gone":    {"flight?kind=end", 300, has("kind", "end") + ` && ` + firstInTrouble},
		"storm":        {"sections/dials", 220, `Number(document.querySelectorAll("main tbody td")[2].textContent) > 0`},
	} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, name, "-trouble", "20s", "-calm", "1s")
			b := chromium.Look(t, p.url, 1280, what.height)
			b.Must(b.Eval(`location.hash = "#/`+what.view+`"`, nil))
			b.Want(`location.hash.startsWith("#/") && document.querySelector("main table")`)
			b.Must(b.Eval(`for (const d of document.querySelectorAll("main details")) d.open = false`, nil))
			b.Want(what.seen)
			if *pictures {
				b.Save("../../docs/incident-"+name+".png", false)
			}
			b.Want(what.seen)
			b.Must(b.Eval(`location.hash = "#/sections/clients"`, nil))
			b.Want(`document.querySelector("#tabs [aria-current]").textContent === "Clients"`)
			b.Want(has("client", "zoe"))
			if errs := b.Errors(); len(errs) > 0 {
				t.Errorf("the browser complains: %q", errs)
			}
		})
	}
}
