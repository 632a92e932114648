//go:build chromium

package main

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/chromium"
	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/lab/live"
)

var pictures = flag.Bool("pictures", false, "write the pictures in docs")

const secret = "a token of a test"

// talkOn makes people type lines until stop is called or the test ends.
func talkOn(t *testing.T, people ...*proctest.Process) (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; n++ {
			select {
			case <-stopped:
				return
			case <-time.After(20 * time.Millisecond):
				people[n%len(people)].Say("line %d", n)
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(stopped)
		<-ended
	})
	t.Cleanup(stop)
	return stop
}

// TestChromiumChat: an operator finds a person on the page of a busy chat, sees the traffic of that
// person's connection, and disconnects it. The person reconnects.
func TestChromiumChat(t *testing.T) {
	t.Setenv(live.Token, secret)
	addr := freeAddr(t)
	host := start(t, "host", "serve", "--addr", addr, "--inspect", "127.0.0.1:0")
	url := pageOf(host)
	names := []string{"ann", "bob", "eve", "zoe"}
	var people []*proctest.Process
	for i, name := range names {
		p := start(t, name, "join", addr, "--nick", name, "--room", []string{"lobby", "cellar"}[i/3])
		p.Want("you are "+name, "the server welcomes")
		people = append(people, p)
	}
	stop := talkOn(t, people[1], people[2])

	b := chromium.Look(t, url, 1180, 300)
	b.Press(`#tabs a[href="#/sections/rooms"]`)
	b.Want(`[...document.querySelectorAll("main tbody tr")].map(r => r.cells[0].textContent + " " + r.cells[1].textContent).join() === "cellar 1,lobby 3"`)
	b.Press(`#tabs a[href="#/sections/people"]`)
	row := func(nick string) string {
		return `[...document.querySelectorAll("main tbody tr")].find(r => r.cells[1].textContent === "` + nick + `")`
	}
	b.Want(row("ann") + ` && ` + row("zoe"))
	if *pictures {
		b.Save("../../docs/inspect-chat.png", false)
	}
	before := chromium.Get[string](b, row("ann")+`.querySelector("a").textContent`)
	b.Press(fmt.Sprintf(`main a[href="#/ids/%s"]`, before))
	b.Want(`document.getElementById("title").textContent === "identifier ` + before + `: connected"`)
	sent := `Number([...document.querySelectorAll("main dl div")].find(d => d.title.startsWith("sent_messages: ")).title.split(" ")[1])`
	n := chromium.Get[int](b, sent)
	b.Want(fmt.Sprintf("%s > %d", sent, n+20))
	b.Act("disconnect", secret)

	people[0].Want("trying again", "it is disconnected")
	people[0].Want("connected again", "it comes back")
	people[1].Want("ann left", "that is seen")
	people[1].Want("ann joined", "that, too")
	b.Press(`#tabs a[href="#/sections/people"]`)
	b.Want(row("ann") + ` && ` + row("ann") + `.querySelector("a").textContent !== "` + before + `"`)
	if errs := b.Errors(); len(errs) > 0 {
		t.Errorf("the browser complains: %q", errs)
	}
	stop()
	host.Want("an operator has acted", "an action is logged")
	host.Signal(unix.SIGINT)
	host.Exit(0, "Ctrl-C, though somebody looks at the page")
}
