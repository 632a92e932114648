// Package pacluster runs Proto.Actor's cluster over RDMA: membership by a provider, virtual actors
// (grains), pub/sub, gossip and remote.SpawnNamed work unchanged, and their messages go through
// package remoting. It is a separate module, because Proto.Actor's cluster needs gRPC and the
// clients of its providers.
//
//	provider, err := pacluster.Automanaged{
//		Listen:  "10.0.0.1:8471", // where members ask each other whether they are there
//		Members: []string{"10.0.0.1:8471", "10.0.0.2:8471", "10.0.0.3:8471"},
//	}.Provider()
//	member, err := pacluster.Start(ctx, rt, pacluster.Config{
//		Cluster:  "shop",
//		Provider: provider,
//		Kinds:    []*cluster.Kind{cluster.NewKind("cart", cartProps)},
//		Remoting: remoting.Config{Name: "10.0.0.1:7471"},
//	})
//	res, err := member.Cluster.Request("cart-17", "cart", &AddItem{...})
//
// # Additions
//
// Proto.Actor's cluster starts Proto.Actor's remote. Here that is a shell: it sends nothing,
// listens on a free port of loopback, and refuses all connections. Start begins with package
// remoting, whose PIDs then stand for all other members.
//
// Members need some of one another's actors, and these are exposed: gossip, the partition's
// activator and its grains, the delivery of pub/sub, the event stream, and, with Config.Spawn, the
// activator of SpawnNamed. Config.Remoting.Expose adds the application's. A message from a member
// by which one of Proto.Actor's own actors would panic is refused.
//
// A batch of pub/sub reaches the grains and the actors that this process has subscribed to its topic
// with the cluster's Subscribe functions, and those that are exposed. Other subscribers in it are
// removed: this member publishes and logs *remoting.Refused for each, and their topic removes them.
// So a process that is restarted subscribes its actors again, and an actor that another member
// subscribes has to be in Config.Remoting.Expose.Reach (and there is no Allow).
//
// # Membership
//
// Proto.Actor blocks a member forever once a list of the provider's lacks it, and does not
// notify it.
// Here each list goes through rules first, which all members evaluate alike:
//
//   - A member that the provider no longer lists, and that still answers over its link, stays one for
//     150 s, so that it can register again after an outage of the provider, and for 10 s if another
//     process joins, whose list lacks it. As long as half of the
//     members or more are missing like that, none of them is removed.
//   - A member that does not answer, that leaves, or whose process has gone is removed immediately.
//     If only gossip contains that it left, which any member can forge, it is asked first.
//   - A removed member is notified, stops its grains and shuts itself down: see Member.Expelled. Of two
//     sides that have removed each other, because the network was cut, the smaller one leaves, and of
//     equal ones the side without the smallest name. If only some members cannot reach each other,
//     they learn by gossip through the others that they have removed each other. Gossip about a member
//     that answers does not count: any other member may have made it up. Gossip about a removed one
//     counts, unless the provider's server answers (Config.Contact).
//   - With Config.Contact, a member that does not reach the provider's server stops its grains within
//     Config.TTL, unless all other members answer. It publishes Suspended, and Resumed if it is still
//     a member when the server or all members answer again.
//
// Member.Members shows the state. Members are known by the ids of their actor systems: a process that
// is restarted at the same address is another member.
//
// Requests to grains are tried again until their time is over while no actor has received them: so
// they wait for the provider to find that a member is gone. One that was under way to a lost
// member fails immediately with *remoting.Unknown, and is not tried again, because it may have
// been handled.
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
// Members trust one another: an admitted node may activate grains, publish, gossip in the name of
// any member and, where kinds are given, spawn.
//
// Proto.Actor never forgets gossip, also of members that have departed or do not exist. So a member
// accepts 8 MiB of it about members, or two messages of Config.Remoting.MaxMessage if that is more,
// and as much about others. Each of n members has an n-th part even if the others have used up all.
// Values count with their keys and 1 KiB each, names once for each member; further values are
// dropped, and logged at most once a minute. Gossip about others includes that of a member that the
// provider has not listed here yet: after thousands of restarts, hundreds in a large cluster, it
// may be lost.
//
// Providers have separate protocols to find members: the automanaged one by HTTP without
// authentication, which also shows the names of kinds.
//
// Tested are the providers automanaged and etcd (3.4). consul, zk and k8s were not tried. For
// Kubernetes, whose provider takes a pod's address as its name, remoting.Config.Resolve returns
// the address of that pod's RDMA device.
//
// zk's provider makes ids from names, so a process that takes a lost one's place there stays
// blocked. While etcd is away, members stay members, lost ones are not removed, and new ones cannot
// join; if it has lost its data when it is back, its provider receives no lists: restart the
// members. Its client pauses longer between attempts to connect the longer etcd was away, up to two
// minutes; backoff.Config of grpc in clientv3.Config.DialOptions bounds that. A member that does
// not answer the automanaged provider for Silence, nor over its link, is blocked, even if it would
// have answered later.
//
// Without Contact, a part of the cluster that is cut off goes on, and its grains are in both parts
// until these meet again. With it, a grain can still run twice: while the stopped one finishes its
// current message; if a member sees the server and all others do not, and a cut within the TTL
// separates it from them; and if a process joins that sees the server while no older member does. A
// lookup other than disthash has to stop its grains itself.
//
// Proto.Actor's cluster discards gRPC's log in the whole process, and has data races in itself;
// the tests run every member in a separate process.
package pacluster
