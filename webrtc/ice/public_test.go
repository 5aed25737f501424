package ice

import (
	"net"
	"net/netip"
	"testing"

	"github.com/pion/stun/v4"
)

func TestMappedAddress(t *testing.T) {
	at := &stun.XORMappedAddress{IP: net.IPv4(203, 0, 113, 5), Port: 4000}
	req, err := stun.Build(stun.TransactionID, stun.BindingRequest)
	if err != nil {
		t.Fatal(err)
	}
	build := func(s ...stun.Setter) []byte {
		m, err := stun.Build(s...)
		if err != nil {
			t.Fatal(err)
		}
		return m.Raw
	}
	for name, row := range map[string]struct {
		packet []byte
		want   netip.AddrPort
	}{
		"response":           {build(req, stun.BindingSuccess, at), netip.MustParseAddrPort("203.0.113.5:4000")},
		"other id":           {build(stun.TransactionID, stun.BindingSuccess, at), netip.AddrPort{}},
		"error":              {build(req, stun.BindingError), netip.AddrPort{}},
		"no address":         {build(req, stun.BindingSuccess), netip.AddrPort{}},
		"port 0":             {build(req, stun.BindingSuccess, &stun.XORMappedAddress{IP: at.IP}), netip.AddrPort{}},
		"not a STUN message": {[]byte("junk"), netip.AddrPort{}},
	} {
		if got, err := mappedAddress(row.packet, req.TransactionID); got != row.want || (err == nil) != row.want.IsValid() {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
