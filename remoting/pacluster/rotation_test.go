package pacluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
)

// useKeys makes a member connect with the first key, and accept them all.
func (p *process) useKeys(names []string) (string, error) {
	var list []rdma.Credential
	for _, name := range names {
		c := rdma.Credential{Identity: "members"}
		copy(c.Key[:], name+" is not a secret in a test")
		list = append(list, c)
	}
	return "", errors.Join(p.keys.Accept(list...), p.keys.Use(list[0]))
}

// disconnect ends all connections, as a restart of the network would.
func (p *process) disconnect() (string, error) {
	p.apart.Store(true)
	defer p.apart.Store(false)
	p.m.Node.Readmit()
	for over := time.Now().Add(patience); time.Now().Before(over); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(p.m.Node.Peers(), func(i remoting.PeerInfo) bool { return i.Connected }) {
			return "", nil
		}
	}
	return "", errors.New("a peer stays connected")
}

// admit implements the node's Admit.
func (p *process) admit(remoting.Peer) error {
	if p.apart.Load() {
		return errors.New("not now")
	}
	return nil
}

// Keys are replaced while members run: the new one is accepted everywhere, then used everywhere,
// then the old one is removed. In between one member after the other is at another step, and all
// connections are lost: each member still reaches the grains of each.
func TestRotateKeys(t *testing.T) {
	t.Parallel()
	steps := [][]string{{"old"}, {"old", "new"}, {"new", "old"}, {"new"}}
	all := roles(t, 3)
	for i := range all {
		all[i].Keys = steps[0]
	}
	m := startAll(t, all...)
	var ids []string
	for _, c := range m {
		ids = append(ids, grainsAt(m[0], c.role.Name, 2)...)
	}
	reach := func(when string) {
		for _, c := range m {
			c.do("disconnect")
		}
		var asked []string
		for _, c := range m {
			asked = append(asked, c.begin("recover %s", strings.Join(ids, " ")))
		}
		for i, c := range m {
			t.Logf("%s: %s reaches all grains after %v", when, c.role.Name, recovered(t, c.ends(asked[i])))
		}
	}
	for _, step := range steps[1:] {
		for _, c := range m {
			c.do("keys %s", strings.Join(step, " "))
			reach(fmt.Sprint(c.role.Name, " has ", step))
		}
	}
	m[2].Kill()
	again := all[2]
	again.Keys = steps[len(steps)-1]
	m[2] = start(t, again)
	m[2].want("= member ", "it has the new key")
	m[2].knows(all[0].Name, all[1].Name, all[2].Name)
	reach("a member was started again")
	for _, c := range m {
		c.never("expelled", "keys were replaced, nobody was lost")
	}
	silent(m...)
}
