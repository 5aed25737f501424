package admincli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/parley-voice/parley/control/config"
)

// socket is a socket that the server opens.
type socket struct{ setting, network, addr string }

// sockets returns the sockets of a server with fixed ports. bind is the address of media.
func sockets(c config.Config, bind netip.Addr) []socket {
	port := func(n int) string { return net.JoinHostPort(bind.String(), strconv.Itoa(n)) }
	all := []socket{
		{"PARLEY_HTTP_ADDR", "tcp", c.HTTPAddr},
		{"PARLEY_HTTP_REDIRECT_ADDR", "tcp", c.HTTPTLS.Redirect},
		{"PARLEY_METRICS_ADDR", "tcp", c.MetricsAddr},
		{"PARLEY_SIP_ADDR", "udp", c.SIPAddr},
		{"PARLEY_SIP_ADDR", "tcp", c.SIPAddr},
		{"PARLEY_SIP_TLS_ADDR", "tcp", c.SIPTLS.Addr},
	}
	for _, m := range []struct {
		setting, network string
		port             int
	}{
		{"PARLEY_WEBRTC_UDP_PORT", "udp", c.WebRTC.UDP},
		{"PARLEY_WEBRTC_TCP_PORT", "tcp", c.WebRTC.TCP},
		{"PARLEY_TURN_PORT", "udp", c.WebRTC.Relay},
	} {
		if m.port != config.Off && c.WebRTC.UDP != config.Off {
			all = append(all, socket{m.setting, m.network, port(m.port)})
		}
	}
	return slices.DeleteFunc(all, func(s socket) bool { return s.addr == "" || strings.HasSuffix(s.addr, ":0") })
}

// checkSockets tries to open each socket of the server.
func (x *Examination) checkSockets(ctx context.Context) (found []Finding) {
	bind, _, err := x.Config.MediaAddrs()
	if err != nil {
		bind = netip.IPv4Unspecified() // checkAddress reports the error
	}
	for _, s := range sockets(x.Config, bind) {
		err := tryListen(ctx, s)
		var user program
		if errors.Is(err, syscall.EADDRINUSE) {
			user = findSocketUser(s, x.Config.DataDir)
		}
		found = append(found, judgeSocket(s, err, user))
	}
	return found
}

func tryListen(ctx context.Context, s socket) error {
	var lc net.ListenConfig
	if s.network == "udp" {
		conn, err := lc.ListenPacket(ctx, s.network, s.addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	l, err := lc.Listen(ctx, s.network, s.addr)
	if err != nil {
		return err
	}
	return l.Close()
}

// judgeSocket interprets the result of opening a socket. user is the program that has it open.
func judgeSocket(s socket, err error, user program) Finding {
	f := Finding{Check: "port", Level: Error}
	name := fmt.Sprintf("%s %s (%s)", s.addr, s.network, s.setting)
	switch {
	case err == nil:
		return Finding{Check: "port", Level: OK, Result: name + " is free"}
	case errors.Is(err, syscall.EADDRINUSE) && user.isOwn:
		f.Level, f.Result = OK, fmt.Sprintf("%s is in use by the server of this data directory, process %d", name, user.pid)
	case errors.Is(err, syscall.EADDRINUSE) && user.isParley:
		f.Result = fmt.Sprintf("%s is in use by a parley with another data directory, process %d: %s", name, user.pid, user.command)
		f.Fix = fmt.Sprintf("stop that process, or set %s to another port", s.setting)
	case errors.Is(err, syscall.EADDRINUSE) && user.pid != 0:
		f.Result = fmt.Sprintf("%s is in use by the program %s, process %d", name, user.name, user.pid)
		f.Fix = fmt.Sprintf("stop that program, or set %s to another port", s.setting)
	case errors.Is(err, syscall.EADDRINUSE):
		f.Level, f.Result = Warning, name+" is in use by a program of another user"
		f.Fix = "run parley doctor as root to see the program; no action is needed if it is parley"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		f.Result = name + ": this machine does not have the address"
		f.Fix = fmt.Sprintf("set %s to an address of this machine, or to 0.0.0.0", s.setting)
	case errors.Is(err, syscall.EACCES):
		f.Result = name + ": ports below 1024 need a privilege"
		f.Fix = "run parley with CAP_NET_BIND_SERVICE, or use a higher port"
	default:
		f.Result, f.Fix = fmt.Sprintf("%s: %v", name, err), "correct "+s.setting
	}
	return f
}

// checkRTP compares the range of RTP ports with the number of calls and the other ports.
func (x *Examination) checkRTP(context.Context) []Finding {
	return []Finding{judgeRTP(x.Config)}
}

func judgeRTP(c config.Config) Finding {
	first, last := c.RTPPorts[0], c.RTPPorts[1]
	calls := (last - (first+1)&^1 + 1) / 2
	f := Finding{Check: "RTP ports", Level: OK}
	f.Result = fmt.Sprintf("ports %d-%d are enough for %d calls; PARLEY_MAX_CALLS is %d", first, last, calls, c.MaxCalls)
	overlaps := func(from, to int) bool { return first <= to && from <= last }
	switch {
	case calls < c.MaxCalls:
		f.Level = Warning
		f.Fix = fmt.Sprintf("set PARLEY_RTP_PORTS to at least %d ports, or PARLEY_MAX_CALLS=%d", 2*c.MaxCalls, calls)
	case c.WebRTC.UDP > 0 && overlaps(c.WebRTC.UDP, c.WebRTC.UDP):
		f.Level, f.Result = Error, fmt.Sprintf("PARLEY_WEBRTC_UDP_PORT %d lies within PARLEY_RTP_PORTS %d-%d", c.WebRTC.UDP, first, last)
		f.Fix = "change one of them"
	case c.WebRTC.Relay >= 0 && overlaps(c.WebRTC.RelayPorts[0], c.WebRTC.RelayPorts[1]):
		f.Level = Error
		f.Result = fmt.Sprintf("PARLEY_TURN_RELAY_PORTS %d-%d overlaps PARLEY_RTP_PORTS %d-%d",
			c.WebRTC.RelayPorts[0], c.WebRTC.RelayPorts[1], first, last)
		f.Fix = "change one of them"
	}
	return f
}

// addresses describes where carriers send media and what is known about it.
type addresses struct {
	media         netip.Addr   // sent to carriers
	own           []netip.Addr // of this machine
	server        string       // STUN server; empty: none
	local, public netip.AddrPort
	err           error // of the STUN server
}

// checkAddress compares the address that carriers get with those of this machine and with the public address.
func (x *Examination) checkAddress(ctx context.Context, stun string) []Finding {
	bind, public, err := x.Config.MediaAddrs()
	if err != nil {
		return []Finding{{
			"address", Error, err.Error(),
			"set PARLEY_SIP_ADDR to IP:port, and PARLEY_MEDIA_IP to the address that carriers reach",
		}}
	}
	a := addresses{media: bind, server: stun}
	if public.IsValid() {
		a.media = public
	}
	if a.server == "" && len(x.Config.WebRTC.STUN) > 0 {
		_, a.server, _ = strings.Cut(x.Config.WebRTC.STUN[0], ":")
	}
	if a.own, err = ownAddresses(); err != nil {
		return []Finding{{
			"address", Warning, fmt.Sprintf("failed to list the addresses of this machine: %v", err), "compare PARLEY_MEDIA_IP with ip addr",
		}}
	}
	if a.server != "" && !bind.IsLoopback() {
		if _, _, noPort := net.SplitHostPort(a.server); noPort != nil {
			a.server = net.JoinHostPort(a.server, "3478")
		}
		limited, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		a.local, a.public, a.err = x.PublicAddr(limited, bind, a.server)
	}
	return []Finding{a.judge()}
}

// ownAddresses returns the addresses of this machine.
func ownAddresses() (own []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	for _, o := range all {
		if p, fault := netip.ParsePrefix(o.String()); fault == nil {
			own = append(own, p.Addr())
		}
	}
	return own, err
}

func (a addresses) judge() Finding {
	f := Finding{Check: "address", Level: Warning}
	own := slices.Contains(a.own, a.media.Unmap())
	seen := a.public.Addr()
	switch {
	case a.media.IsLoopback():
		f.Result = fmt.Sprintf("SDP gives carriers the media address %s, which only this machine reaches", a.media)
		f.Fix = "set PARLEY_SIP_ADDR=0.0.0.0:5060, and PARLEY_MEDIA_IP to the address that carriers reach"
	case a.server == "" && own && !a.media.IsPrivate():
		f.Level = OK
		f.Result = fmt.Sprintf("%s is an address of this machine; no STUN server is set, so the public address was not checked", a.media)
	case a.server == "":
		f.Result = fmt.Sprintf("%s is %s; no STUN server is set, so the public address was not checked",
			a.media, map[bool]string{true: "a private address of this machine", false: "not an address of this machine"}[own])
		f.Fix = "pass --stun HOST:PORT of a public STUN server, such as stun.l.google.com:19302, to compare PARLEY_MEDIA_IP"
	case a.err != nil:
		f.Result = fmt.Sprintf("the STUN server %s does not answer, so the public address was not checked: %v", a.server, a.err)
		f.Fix = "allow UDP to it, or pass --stun with another server"
	case seen == a.media.Unmap() && a.local.Port() != a.public.Port():
		f.Result = fmt.Sprintf("NAT changes ports: %s leaves as %s, so media of carriers would not arrive", a.local, a.public)
		f.Fix = "map the ports of PARLEY_RTP_PORTS and PARLEY_SIP_ADDR one to one"
	case seen == a.media.Unmap():
		f.Level, f.Result = OK, fmt.Sprintf("%s is the public address that %s sees", a.media, a.server)
	case own:
		f.Result = fmt.Sprintf("SDP gives carriers the media address %s; %s sees this machine as %s", a.media, a.server, seen)
		f.Fix = fmt.Sprintf("set PARLEY_MEDIA_IP=%s, unless carriers reach this machine over a private network", seen)
	default:
		f.Level = Error
		f.Result = fmt.Sprintf("PARLEY_MEDIA_IP %s is neither an address of this machine nor the public address, which %s sees as %s",
			a.media, a.server, seen)
		f.Fix = "set PARLEY_MEDIA_IP=" + cmp.Or(seen.String(), "the public address")
	}
	return f
}
