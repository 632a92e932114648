package remoting

// NodeID is what stands for a name where a number is needed.
var NodeID = nodeID
