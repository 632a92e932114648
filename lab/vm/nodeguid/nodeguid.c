// SPDX-License-Identifier: GPL-2.0
// nodeguid takes the node GUIDs of RDMA devices away, until it is unloaded. Functions of SR-IOV have
// none before their host sets one.
//
//	modprobe nodeguid devices=rxe0,siw0
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static char *devices[4];
static int count;
module_param_array(devices, charp, &count, 0);

static __be64 before[ARRAY_SIZE(devices)];

static void change(bool back)
{
	int i;

	for (i = 0; i < count; i++) {
		struct ib_device *dev = ib_device_get_by_name(devices[i], RDMA_DRIVER_UNKNOWN);

		if (!dev)
			continue;
		if (!back)
			before[i] = dev->node_guid;
		dev->node_guid = back ? before[i] : 0;
		ib_device_put(dev);
	}
}

static int __init nodeguid_init(void)
{
	change(false);
	return 0;
}

static void __exit nodeguid_exit(void)
{
	change(true);
}

module_init(nodeguid_init);
module_exit(nodeguid_exit);
MODULE_DESCRIPTION("RDMA devices without a node GUID");
MODULE_LICENSE("GPL");
