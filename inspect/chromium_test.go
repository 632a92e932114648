//go:build chromium

package inspect

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/chromium"
)

var pictures = flag.Bool("pictures", false, "write the pictures in docs")

// browser is a page in Chromium. A step that fails ends the test.
type browser struct {
	testing.TB
	*chromium.Browser
}

func (b browser) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%v\n%v", err, b.Errors())
	}
}

func (b browser) wait(expression string) { b.Helper(); b.must(b.Wait(expression)) }
func (b browser) click(selector string)  { b.Helper(); b.must(b.Click(selector)) }
func (b browser) key(name string)        { b.Helper(); b.must(b.Key(name)) }

// busyProgram is one with connections under load, and names that peers have chosen.
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
	b.wait(`document.querySelectorAll("main tbody tr").length === 50 && document.querySelector("#diagram [data-state=connected] .count").textContent === "120"`)
	if *pictures {
		picture(b, "inspect-light.png", false)
		picture(b, "inspect-dark.png", true)
		b.must(b.Dark(false))
	}
	b.click("#diagram [data-state=idle]")
	b.wait(`document.querySelectorAll("main tbody tr").length === 20 && location.hash.includes("state=idle")`)
	b.click("#diagram [data-state=idle]")
	b.wait(`document.querySelectorAll("main tbody tr").length === 50`)
	b.click("#next")
	b.wait(`document.getElementById("count").textContent.includes("page 2 of 3")`)
	b.click("th[data-name=sent_messages] button")
	b.click("th[data-name=sent_messages] button")
	b.wait(`document.querySelector("th[data-name=sent_messages]").getAttribute("aria-sort") === "descending"`)
	b.wait(`document.querySelector("#count").textContent.includes("page 1 of 3")`)

	b.key("/")
	b.wait(`document.activeElement.id === "filter"`)
	b.must(b.Type("connected"))
	b.wait(`document.getElementById("count").textContent.startsWith("120 of 141")`)
	b.key("Escape")
	b.key("j")
	b.key("j")
	b.key("k")
	b.key("j")
	b.wait(`document.querySelectorAll("tbody tr")[1].classList.contains("selected")`)
	b.key("Enter")
	b.wait(`/^#\/ids\/\d+$/.test(location.hash) && document.getElementById("title").textContent.includes("connected")`)
	b.wait(`[...document.querySelectorAll("#history .name")].some(e => e.textContent === "route-resolved" || e.textContent === "accepting")`)
	b.wait(`document.querySelectorAll("#sparks path").length > 8 && document.querySelector("#sparks path").getAttribute("d").split("L").length > 3`)
	if *pictures {
		time.Sleep(4 * time.Second)
		picture(b, "inspect-id.png", true)
	}
	b.key("Escape")
	b.wait(`location.hash.startsWith("#/ids?")`)
	b.key("2")
	b.wait(`document.querySelectorAll("main tbody tr").length === 2 && /\d %/.test(document.querySelector("main tbody td:nth-child(2)").textContent)`)
	for view, want := range map[string]string{"memory": "receive", "listeners": "127.0.0.1", "devices": "iwarp", "flight": "-> connected"} {
		b.click(`#tabs a[href="#/` + view + `"]`)
		b.wait(`[...document.querySelectorAll("main td")].some(e => e.textContent.includes("` + want + `"))`)
	}
	b.wait(`(location.hash = "#/ids/%zz") && true`) // which is no escape
	b.wait(`document.getElementById("alert").textContent.includes("no such identifier")`)
	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complains: %q", errs)
	}
}

// TestChromiumHostileNames: what peers have chosen is text in the page.
func TestChromiumHostileNames(t *testing.T) {
	b := open(t, busyProgram(t, nil))
	b.click(`#tabs a[href="#/sections/members"]`)
	b.wait(`[...document.querySelectorAll("main td")].some(e => e.textContent === "<script>alert(1)</script>")`)
	b.wait(fmt.Sprintf(`document.querySelectorAll("main tbody tr").length === %d`, len(hostile)))
	var wild int
	b.must(b.Eval(`document.querySelectorAll("main img, main script, main iframe, main [onerror], main td *").length`, &wild))
	if errs := b.Errors(); wild != 0 || len(errs) > 0 {
		t.Errorf("%d elements of others, %q", wild, errs)
	}
}

// TestChromiumNews: what the server says is painted soon, and after a break it comes again.
func TestChromiumNews(t *testing.T) {
	r := busyProgram(t, nil)
	b := open(t, r)
	b.wait(`document.querySelectorAll("main tbody tr").length === 50`)
	worst := 0
	for range 20 {
		var painted string
		b.must(b.Eval("document.body.dataset.painted", &painted))
		b.wait(`document.body.dataset.painted !== "` + painted + `"`)
		var age int
		b.must(b.Eval("Number(document.body.dataset.ageMilliseconds)", &age))
		worst = max(worst, age)
	}
	t.Logf("painted at most %d ms after the program was inspected", worst)
	b.must(b.Eval(`Object.defineProperty(document, "hidden", { value: true, configurable: true }), document.dispatchEvent(new Event("visibilitychange"))`, nil))
	r.until("a hidden page is no viewer", func() bool { return r.page.viewers.Load() == 0 })
	b.must(b.Eval(`Object.defineProperty(document, "hidden", { value: false, configurable: true }), document.dispatchEvent(new Event("visibilitychange"))`, nil))
	r.until("a shown one is", func() bool { return r.page.viewers.Load() == 1 })
}

// open opens the program's page.
func open(t *testing.T, r *rig) browser {
	t.Helper()
	started, err := chromium.Start(1180, 800)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Close(); err != nil {
			t.Error(err)
		}
	})
	b := browser{t, started}
	b.must(b.Open(r.url))
	b.wait(`document.querySelectorAll("#tabs a").length >= 7 && document.body.dataset.painted`)
	return b
}

// picture writes what the page shows to docs.
func picture(b browser, name string, dark bool) {
	b.Helper()
	b.must(b.Dark(dark))
	b.must(b.Eval("scrollTo(0, 0)", nil))
	time.Sleep(500 * time.Millisecond)
	data, err := b.Picture()
	b.must(err)
	if !strings.HasSuffix(name, ".png") || len(data) > 150<<10 {
		b.Errorf("%s has %d bytes", name, len(data))
	}
	b.must(os.WriteFile(filepath.Join("..", "docs", name), data, 0o644))
}
