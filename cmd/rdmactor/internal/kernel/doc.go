// Package kernel reads the kernel's table of identifiers, the one that `rdma resource show cm_id`
// prints, over netlink (RDMA_NLDEV_CMD_RES_CM_ID_GET). The kernel shows a process only identifiers
// of its PID namespace. Identifiers without a device are not in its table. An identifier that
// listens at every address appears once for each device.
package kernel
