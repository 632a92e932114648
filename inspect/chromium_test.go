//go:build chromium

package inspect

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/chromium"
)

var pictures = flag.Bool("pictures", false, "write the pictures in docs")

// browser is a page in Chromium. A step that fails ends the test.
type browser struct{ *chromium.Tab }

func (b browser) key(name string) { b.Helper(); b.Must(b.Key(name)) }

// busyProgram returns a program with connections under load, and names that peers have chosen.
func busyProgram(t *testing.T, actions *Actions) *rig {
	r := newRig(t, Config{
		Interval: 200 * time.Millisecond, Actions: actions,
		Sections: []Section{Rows("members", "Members", func() []struct{ Nick, Room string } {
			rows := []struct{ Nick, Room string }{}
			for _, name := range hostile {
				rows = append(rows, struct{ Nick, Room string }{name, "lobby"})
			}
			return rows
		})},
	}, rdma.Config{Loops: make([]eventloop.Config, 2)})
	addr := r.echo()
	for i := range 60 {
		r.connect(addr, min(i%7, 4))
	}
	r.idle(20)
	return r
}

// TestChromium: a user looks around in a program under load, with the mouse and with the keyboard.
func TestChromium(t *testing.T) {
	r := busyProgram(t, nil)
	b := open(t, r)
	b.Want(`document.querySelectorAll("main tbody tr").length === 50 && document.querySelector("#diagram [data-state=connected] .count").textContent === "120"`)
	if *pictures {
		b.Save(filepath.Join("..", "docs", "inspect-light.png"), false)
		b.Save(filepath.Join("..", "docs", "inspect-dark.png"), true)
		b.Must(b.Dark(false))
	}
	b.Press("#diagram [data-state=idle]")
	b.Want(`document.querySelectorAll("main tbody tr").length === 20 && location.hash.includes("state=idle")`)
	b.Press("#diagram [data-state=idle]")
	b.Want(`document.querySelectorAll("main tbody tr").length === 50`)
	b.Press("#next")
	b.Want(`document.getElementById("count").textContent.includes("page 2 of 3")`)
	b.Press("th[data-name=sent_messages] button")
	b.Press("th[data-name=sent_messages] button")
	b.Want(`document.querySelector("th[data-name=sent_messages]").getAttribute("aria-sort") === "descending"`)
	b.Want(`document.querySelector("#count").textContent.includes("page 1 of 3")`)

	b.key("/")
	b.Want(`document.activeElement.id === "filter"`)
	b.Must(b.Type("connected"))
	b.Want(`document.getElementById("count").textContent.startsWith("120 of 141")`)
	b.key("Escape")
	b.key("j")
	b.key("j")
	b.key("k")
	b.key("j")
	b.Want(`document.querySelectorAll("tbody tr")[1].classList.contains("selected")`)
	b.key("Enter")
	b.Want(`/^#\/ids\/\d+$/.test(location.hash) && document.getElementById("title").textContent.includes("connected")`)
	b.Want(`[...document.querySelectorAll("#history .name")].some(e => e.textContent === "route-resolved" || e.textContent === "accepting")`)
	b.Want(`document.querySelectorAll("#sparks path").length > 8 && document.querySelector("#sparks path").getAttribute("d").split("L").length > 3`)
	if *pictures {
		time.Sleep(4 * time.Second)
		b.Save(filepath.Join("..", "docs", "inspect-id.png"), true)
	}
	b.key("Escape")
	b.Want(`location.hash.startsWith("#/ids?")`)
	b.key("2")
	b.Want(`document.querySelectorAll("main tbody tr").length === 2 && /\d %/.test(document.querySelector("main tbody td:nth-child(2)").textContent)`)
	for view, want := range map[string]string{"memory": "receive", "listeners": "127.0.0.1", "devices": "iwarp", "flight": "-> connected"} {
		b.Press(`#tabs a[href="#/` + view + `"]`)
		b.Want(`[...document.querySelectorAll("main td")].some(e => e.textContent.includes("` + want + `"))`)
	}
	b.Want(`(location.hash = "#/ids/%zz") && true`) // not an escape
	b.Want(`document.getElementById("alert").textContent.includes("no such identifier")`)
	b.Want(`(location.hash = "#/ids/99999") && true`) // ended, or never there
	b.Want(`!document.getElementById("records").hidden && document.getElementById("records").getAttribute("href") === "#/flight?id=99999"`)
	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complains: %q", errs)
	}
}

// TestChromiumLeavesFilter: who types a filter and opens another view before it applies, stays
// there.
func TestChromiumLeavesFilter(t *testing.T) {
	b := open(t, busyProgram(t, nil))
	var at string
	b.Must(b.Eval(`new Promise(done => {
		const filter = document.getElementById("filter");
		filter.value = "connected";
		filter.dispatchEvent(new Event("input"));
		location.hash = "#/loops";
		setTimeout(() => done(location.hash), 1000); // the filter applies after 200 ms
	})`, &at))
	if at != "#/loops" {
		t.Errorf("then the page shows %s", at)
	}
}

// TestChromiumCurves: the page keeps minutes of figures for its curves, but not the tables that
// come with them, because they would take hundreds of megabytes. When the clock is set back, the
// curves begin anew.
func TestChromiumCurves(t *testing.T) {
	b := open(t, busyProgram(t, nil))
	b.Want(`samples.get("").length > 1`)
	var other string
	b.Must(b.Eval(`Object.entries(samples.get("")[1].data).filter(([, v]) => typeof v !== "number").map(([n]) => n).join()`, &other))
	if other != "" {
		t.Errorf("each sample keeps %s", other)
	}
	var kept string
	b.Must(b.Eval(`[12, 13, 11].forEach(h => remember("x", { taken: "2026-01-01T" + h + ":00:00Z", sent_messages: h })),
		samples.get("x").map(s => s.data.sent_messages).join()`, &kept))
	if kept != "11" {
		t.Errorf("after the clock was set back to 11 h, the curve has %s", kept)
	}
	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complains: %q", errs)
	}
}

// TestChromiumHostileNames: names that peers have chosen are text in the page.
func TestChromiumHostileNames(t *testing.T) {
	b := open(t, busyProgram(t, nil))
	b.Press(`#tabs a[href="#/sections/members"]`)
	b.Want(`[...document.querySelectorAll("main td")].some(e => e.textContent === "<script>alert(1)</script>")`)
	b.Want(fmt.Sprintf(`document.querySelectorAll("main tbody tr").length === %d`, len(hostile)))
	var wild int
	b.Must(b.Eval(`document.querySelectorAll("main img, main script, main iframe, main [onerror], main td *").length`, &wild))
	if errs := b.Errors(); wild != 0 || len(errs) > 0 {
		t.Errorf("%d elements of others, %q", wild, errs)
	}
}

// TestChromiumNews: the server's news are painted soon, and again after a break.
func TestChromiumNews(t *testing.T) {
	r := busyProgram(t, nil)
	b := open(t, r)
	b.Want(`document.querySelectorAll("main tbody tr").length === 50`)
	worst := 0
	for range 20 {
		var painted string
		b.Must(b.Eval("document.body.dataset.painted", &painted))
		b.Want(`document.body.dataset.painted !== "` + painted + `"`)
		var age int
		b.Must(b.Eval("Number(document.body.dataset.ageMilliseconds)", &age))
		worst = max(worst, age)
	}
	t.Logf("painted at most %d ms after the program was inspected", worst)
	b.Must(b.Eval(`Object.defineProperty(document, "hidden", { value: true, configurable: true }), document.dispatchEvent(new Event("visibilitychange"))`, nil))
	r.until("a hidden page is no viewer", func() bool { return r.page.viewers.Load() == 0 })
	b.Must(b.Eval(`Object.defineProperty(document, "hidden", { value: false, configurable: true }), document.dispatchEvent(new Event("visibilitychange"))`, nil))
	r.until("a shown one is", func() bool { return r.page.viewers.Load() == 1 })
}

// open opens the program's page.
func open(t *testing.T, r *rig) browser {
	t.Helper()
	b := browser{chromium.Look(t, r.url, 1180, 800)}
	b.Want(`document.querySelectorAll("#tabs a").length >= 7 && document.body.dataset.painted`)
	return b
}
