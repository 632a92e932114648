package pacluster

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/remoting"
)

// All of Proto.Actor's messages pass the rules: none is refused. And each rule is needed.
func TestExposed(t *testing.T) {
	t.Parallel()
	all := roles(t, 3)
	for i := range all {
		all[i].Nosy = true
	}
	m := startAll(t, all...)
	for i := range 10 {
		m[i%3].do("where g%d", i)
	}
	for i, c := range m {
		other := m[(i+1)%3].role.Name
		c.do("subscribe topic")
		c.do("publish topic text%d", i)
		c.do("set colour red%d", i)
		c.do("spawn %s greeter%d %s", other, i, spawnKind)
		c.do("ask %s activator/Remote$greeter%d", other, i)
		c.do("watch %s activator/Remote$greeter%d", other, i)
		c.do("stop %s activator/Remote$greeter%d", other, i)
		c.want("terminated ", "it was stopped")
	}
	id := m[0].do("id")
	if got := m[1].do("touch %s %s", m[0].role.Name, presenceName(id)); got != "" {
		t.Errorf("asked whether it is there, a member answers %q", got)
	}
	for _, c := range m {
		c.until("red0,red1,red2", "get colour")
		c.do("broadcast")
		c.do("watch-grains g0 g1 g2 g3 g4 g5 g6 g7 g8 g9")
	}
	used := make(map[string]bool)
	for _, c := range m {
		c.until("3", "broadcasts")
		if got := c.do("refused"); got != "0" {
			t.Errorf("%s has refused %s messages", c.role.Name, got)
		}
		c.never("gone ", "the grains are there")
		for _, l := range c.Seen {
			if rest, ok := strings.CutPrefix(l, "access "); ok {
				used[rest] = true
			}
		}
	}
	e := memberExpose(id, true)
	for access, rules := range map[string][]string{"reach": e.Reach, "watch": e.Watch, "stop": e.Stop, "spawn": e.Spawn} {
		for _, rule := range rules {
			prefix, star := strings.CutSuffix(rule, "*")
			if !slices.ContainsFunc(slices.Collect(keys(used)), func(u string) bool {
				return u == access+" "+rule || star && strings.HasPrefix(u, access+" "+prefix)
			}) {
				t.Errorf("nobody has needed to %s %s", access, rule)
			}
		}
	}
}

func keys(m map[string]bool) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Without kinds to spawn, the activator is not reached.
func TestNothingToSpawn(t *testing.T) {
	e := memberExpose("x", false)
	for _, rules := range [][]string{e.Reach, e.Watch, e.Stop} {
		for _, rule := range rules {
			if strings.HasPrefix(rule, activator) {
				t.Errorf("%s is exposed", rule)
			}
		}
	}
	if got := mergeExpose(e, remoting.Expose{Stop: []string{"x"}}); !slices.Equal(got.Stop, []string{"x"}) || !slices.Equal(got.Reach, e.Reach) {
		t.Errorf("%+v", got)
	}
}

// These are all places in Proto.Actor's source where a PID of another node gets its name, or an
// actor a name that others know. Another one in a later version needs a look at exposed.
func TestNames(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/asynkron/protoactor-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	var got []string
	for _, pkg := range []string{"cluster", "cluster/clusterproviders/automanaged", "cluster/clusterproviders/etcd", "cluster/identitylookup/disthash", "remote"} {
		got = append(got, named(t, dir+"/"+pkg, pkg)...)
	}
	slices.Sort(got)
	want := []string{ // arr[index] is gRPC's; only this process knows "EndpointSupervisor"
		`cluster/gossip_actor.go NewPID DefaultGossipActorName`,
		`cluster/gossiper.go SpawnNamed g.GossipActorName`,
		`cluster/identitylookup/disthash/manager.go NewPID PartitionActivatorActorName`,
		`cluster/identitylookup/disthash/manager.go SpawnNamed PartitionActivatorActorName`,
		`cluster/identitylookup/disthash/placement_actor.go SpawnPrefix msg.ClusterIdentity.Identity`,
		`cluster/member_list.go NewPID "eventstream"`,
		`cluster/pubsub.go SpawnNamed PubSubDeliveryName`,
		`cluster/pubsub_topic.go NewPID PubSubDeliveryName`,
		`remote/activator_actor.go NewPID "activator"`,
		`remote/activator_actor.go SpawnNamed "Remote$" + name`,
		`remote/endpoint_manager.go SpawnNamed "EndpointSupervisor"`,
		`remote/endpoint_manager.go SpawnNamed "activator"`,
		`remote/endpoint_reader.go NewPID arr[index]`,
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("Proto.Actor has the names\n%s\nand not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// named lists the calls that give a PID or an actor a name.
func named(t *testing.T, dir, pkg string) (list []string) {
	t.Helper()
	set := token.NewFileSet()
	pkgs, err := parser.ParseDir(set, dir, func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }, 0) //nolint:staticcheck // one folder, no build tags
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for file, f := range p.Files {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 2 {
					return true
				}
				sel, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || !slices.Contains([]string{"NewPID", "SpawnNamed", "SpawnPrefix"}, sel.Sel.Name) {
					return true
				}
				var b bytes.Buffer
				if err := printer.Fprint(&b, set, call.Args[1]); err != nil {
					t.Fatal(err)
				}
				list = append(list, fmt.Sprintf("%s%s %s %s", pkg, strings.TrimPrefix(file, dir), sel.Sel.Name, b.String()))
				return true
			})
		}
	}
	return list
}
