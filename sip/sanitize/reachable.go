package sanitize

import (
	"net/netip"
	"slices"
)

// metadataAddrs serve a cloud instance's credentials.
//
//nolint:gochecknoglobals // read-only table
var metadataAddrs = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // metadata services of AWS, Google, Azure and others
	netip.MustParseAddr("169.254.170.2"),   // metadata service of AWS for containers
	netip.MustParseAddr("fd00:ec2::254"),   // metadata service of AWS over IPv6
	netip.MustParseAddr("100.100.100.200"), // metadata service of Alibaba
	netip.MustParseAddr("168.63.129.16"),   // metadata service of Azure
	netip.MustParseAddr("192.0.0.192"),     // metadata service of Oracle
}

// Reachable reports whether a peer may make us send to an address. This machine,
// its link and metadata services of clouds are excluded, unless the trunk is
// there too.
func Reachable(to, trunk netip.Addr) bool {
	to, trunk = to.Unmap().WithZone(""), trunk.Unmap().WithZone("")
	switch {
	case !to.IsValid() || to.IsUnspecified() || to.IsMulticast():
		return false
	case to == trunk:
		return true
	case to.IsLoopback():
		return trunk.IsLoopback()
	case slices.Contains(metadataAddrs, to):
		return false
	case to.IsLinkLocalUnicast():
		return trunk.IsLinkLocalUnicast()
	default:
		return true
	}
}
