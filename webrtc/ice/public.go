package ice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"
)

// stunRetry is the time after which a request is sent again, because UDP may lose it.
const stunRetry = 500 * time.Millisecond

// PublicAddr asks a STUN server (RFC 8489), HOST:PORT, from which address a packet of bind arrives. It returns the local
// address of the socket and the address that the server saw. If bind is invalid, the kernel chooses an address.
func PublicAddr(ctx context.Context, bind netip.Addr, server string) (local, public netip.AddrPort, err error) {
	d := net.Dialer{}
	if bind.IsValid() && !bind.IsUnspecified() {
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(bind, 0))
	}
	conn, err := d.DialContext(ctx, "udp", server)
	if err != nil {
		return local, public, err
	}
	defer func() { _ = conn.Close() }()
	if at, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		local = netip.AddrPortFrom(at.AddrPort().Addr().Unmap(), at.AddrPort().Port())
	}
	req, err := stun.Build(stun.TransactionID, stun.BindingRequest)
	if err != nil {
		return local, public, err
	}
	buffer := make([]byte, 1500)
	for ctx.Err() == nil {
		if _, err = conn.Write(req.Raw); err != nil {
			return local, public, err
		}
		if err = conn.SetReadDeadline(time.Now().Add(stunRetry)); err != nil {
			return local, public, err
		}
		n, err := conn.Read(buffer)
		if lost, ok := errors.AsType[net.Error](err); ok && lost.Timeout() {
			continue
		}
		if err != nil {
			return local, public, err
		}
		if public, err = mappedAddress(buffer[:n], req.TransactionID); err == nil {
			return local, public, nil
		}
	}
	return local, public, errors.New("no answer")
}

// mappedAddress returns the address in the response to the request with an id.
func mappedAddress(packet []byte, id [stun.TransactionIDSize]byte) (netip.AddrPort, error) {
	var res stun.Message
	if err := stun.Decode(packet, &res); err != nil {
		return netip.AddrPort{}, err
	}
	if res.TransactionID != id || res.Type != stun.BindingSuccess {
		return netip.AddrPort{}, fmt.Errorf("unexpected message %v", res.Type)
	}
	var seen stun.XORMappedAddress
	if err := seen.GetFrom(&res); err != nil {
		return netip.AddrPort{}, err
	}
	ip, ok := netip.AddrFromSlice(seen.IP)
	if !ok || seen.Port < 1 || seen.Port > 65535 {
		return netip.AddrPort{}, errors.New("invalid address")
	}
	return netip.AddrPortFrom(ip.Unmap(), uint16(seen.Port)), nil
}
