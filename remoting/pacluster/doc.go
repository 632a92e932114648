// Package pacluster has Proto.Actor's cluster run over RDMA: membership by a provider, virtual
// actors (grains), pub/sub, gossip and remote.SpawnNamed work as they are, and their messages go
// through package remoting. It is a module of its own, because Proto.Actor's cluster needs gRPC and
// the clients of its providers.
//
//	provider, err := pacluster.Automanaged{
//		Listen:  "10.0.0.1:8471", // where members ask each other whether they are there
//		Members: []string{"10.0.0.1:8471", "10.0.0.2:8471", "10.0.0.3:8471"},
//	}.Provider()
//	member, err := pacluster.Start(ctx, sys, rt, pacluster.Config{
//		Cluster:  "shop",
//		Provider: provider,
//		Kinds:    []*cluster.Kind{cluster.NewKind("cart", cartProps)},
//		Remoting: remoting.Config{Name: "10.0.0.1:7471"},
//	})
//	res, err := member.Cluster.Request("cart-17", "cart", &AddItem{...})
//
// # What it adds
//
// Proto.Actor's cluster starts Proto.Actor's remote. Here that is a shell: it sends nothing,
// listens on a free port of loopback, and refuses whoever connects. Start begins with package
// remoting, whose PIDs then stand for all other members.
//
// Members need some of one another's actors, and these are exposed: gossip, the partition's
// activator and its grains, the delivery of pub/sub, the event stream, and, with Config.Spawn, the
// activator of SpawnNamed. Config.Remoting.Expose adds the application's. A message from a member
// by which one of Proto.Actor's own actors would panic is refused.
//
// A node that the provider has not found is blocked for ever by Proto.Actor. It loses its links,
// cannot connect any more, and learns that: see Member.Expelled. So does the smaller part of a
// cluster whose network was in two parts, within seconds after the parts meet again.
//
// Requests to grains are tried again until their time is over while nobody has received them: so
// they wait for the provider to find that a member is gone. One that was under way to a member that
// is lost fails at once with *remoting.Unknown, and is not tried again, because it may have been
// handled.
//
// # Ownership
//
// Start takes the actor system and the runtime for as long as the member lives; both stay their
// owner's, who shuts them down after Shutdown. One actor system is a member once.
//
// # Ordering
//
// It is that of package remoting: messages of one sender to one grain keep their order while the
// grain and the link stay. Start returns when the member has joined, which the others may find a
// little later.
//
// # Errors
//
// Start returns what Proto.Actor's functions panic with, or why its context has ended. A request to a grain returns an error also
// for what Proto.Actor's own context returns as a value; errors.As finds *remoting.Unknown and
// *remoting.Refused. Cluster.RequestFuture gives a future: use remoting.Result.
//
// # Limitations
//
// Members trust one another: whoever is admitted may activate grains, publish and, where kinds are
// given, spawn. Providers find members by ways of their own: the automanaged one by HTTP without
// authentication, which also shows the names of kinds.
//
// Tested are the providers automanaged and etcd (3.4). consul, zk and k8s were not tried. For
// Kubernetes, whose provider takes a pod's address as its name, remoting.Config.Resolve says where
// the RDMA device of that pod is.
//
// zk's provider makes ids from names, so a process that takes a lost one's place there stays
// blocked. While etcd is away, members stay members, and who is lost is not found; if it has lost
// its data when it is back, its provider learns nothing any more: start the members again. Who does
// not answer the automanaged provider for Silence is blocked, even if it would have answered later.
//
// Proto.Actor's cluster discards gRPC's log in the whole process, and has data races in itself; the
// tests run every member in a process of its own.
package pacluster
