package turnserver

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/turn/v5"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/parley-voice/parley/media"
	"github.com/parley-voice/parley/webrtc/ice"
)

const secret = media.Secret("canary-of-turn")

// echo runs a gateway that returns every packet.
func echo(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 1500); ; {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = conn.WriteToUDPAddrPort(b[:n], from)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func open(t *testing.T, change func(*Config)) *Server {
	t.Helper()
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, others) })
	local := echo(t)
	c := Config{Addr: netip.MustParseAddrPort("127.0.0.1:0"), First: 42000, Last: 42999, Secret: secret, Gateway: local}
	if change != nil {
		change(&c)
	}
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// credential returns a call's credential that is valid for the duration good.
func credential(call string, good time.Duration) (user, password string) {
	all := ice.Servers{TURN: []string{"turn:x"}, Secret: secret}.ForCall(call, time.Now().Add(good))
	return all[0].Username, all[0].Credential
}

func client(t *testing.T, s *Server, user, password string) *turn.Client {
	t.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := turn.NewClient(&turn.ClientConfig{
		TURNServerAddr: s.addr.String(), Username: user, Password: password, Conn: conn, LoggerFactory: ice.Logger(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err = c.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); _ = conn.Close() })
	return c
}

func allocate(t *testing.T, s *Server, call string) net.PacketConn {
	t.Helper()
	user, password := credential(call, time.Hour)
	conn, err := client(t, s, user, password).Allocate()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// exchange sends a packet and returns the answer.
func exchange(t *testing.T, conn net.PacketConn, to string) (string, error) {
	t.Helper()
	if _, err := conn.WriteTo([]byte("ping"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to))); err != nil {
		return "", err
	}
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	b := make([]byte, 100)
	n, from, err := conn.ReadFrom(b)
	if err != nil {
		return "", err
	}
	return string(b[:n]) + " from " + from.String(), nil
}

// TestRelay sends to the gateway's public address, and checks that the packet reaches the actual address. The relay
// must have the public address and a port of the range.
func TestRelay(t *testing.T) {
	var public string
	s := open(t, func(c *Config) {
		c.Public = netip.MustParseAddr("203.0.113.7")
		public = netip.AddrPortFrom(c.Public, c.Gateway.Port()).String()
	})
	if got := s.URLs()[0]; got != "turn:203.0.113.7:"+strconv.Itoa(int(s.addr.Port()))+"?transport=udp" {
		t.Error(got)
	}
	conn := allocate(t, s, "call_a")
	relay := netip.MustParseAddrPort(conn.LocalAddr().String())
	if relay.Addr().String() != "203.0.113.7" || relay.Port() < 42000 || relay.Port() > 42999 {
		t.Errorf("the relay is %v", relay)
	}
	if got, err := exchange(t, conn, public); err != nil || got != "ping from "+public {
		t.Errorf("%q %v", got, err)
	}
}

func TestPeers(t *testing.T) {
	var gateway netip.AddrPort
	s := open(t, func(c *Config) {
		gateway = c.Gateway
		c.Peers = []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:30000")}
	})
	p := newPeers(Config{Addr: gateway, Gateway: gateway, Peers: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.9:30000")}})
	conn := allocate(t, s, "call_a")
	for what, to := range map[string]string{
		"loopback": "127.0.0.2:5432", "loopback of IPv6": "[::1]:5432", "unspecified": "0.0.0.0:5432", "unspecified, IPv6": "[::]:5432",
		"private, 10/8": "10.0.0.8:80", "private, 172.16/12": "172.16.0.1:80", "private, 192.168/16": "192.168.1.1:80",
		"shared": "100.64.0.1:80", "link-local": "169.254.1.1:80", "metadata": "169.254.169.254:80", "metadata, IPv6": "[fd00:ec2::254]:80",
		"link-local, IPv6": "[fe80::1]:80", "unique local": "[fc00::1]:80", "multicast": "224.0.0.1:80", "multicast, IPv6": "[ff02::1]:80",
		"broadcast": "255.255.255.255:80", "mapped loopback": "[::ffff:127.0.0.2]:5432", "mapped private": "[::ffff:10.0.0.8]:80",
		"reserved": "240.0.0.1:80", "NAT64": "[64:ff9b::a00:8]:80", "6to4": "[2002:a00:8::1]:80", "public": "8.8.8.8:53", "public, IPv6": "[2001:4860:4860::8888]:53",
	} {
		a := netip.MustParseAddrPort(to)
		_, err := exchange(t, conn, to)
		want := "403" // forbidden
		if a.Addr().Unmap().Is6() {
			want = "443" // of another family than the relay
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %s: %v, want %s", what, to, err, want)
		}
		if _, ok := p.to(a); ok || p.permit(nil, net.IP(a.Addr().AsSlice())) {
			t.Errorf("%s: got a relayed packet, want none", what)
		}
	}
	if to, ok := p.to(netip.MustParseAddrPort("10.0.0.9:30000")); !ok || to.String() != "10.0.0.9:30000" || !p.permit(nil, net.IPv4(10, 0, 0, 9)) {
		t.Error("a configured node was not relayed to")
	}
}

// TestOtherPortsAreRefused checks that other ports of the gateway's host, such as a database, receive nothing. TURN
// permissions alone would allow all ports.
func TestOtherPortsAreRefused(t *testing.T) {
	var gateway netip.AddrPort
	s := open(t, func(c *Config) { gateway = c.Gateway })
	database, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = database.Close() }()
	conn := allocate(t, s, "call_a")
	if got, failure := exchange(t, conn, gateway.String()); failure != nil {
		t.Fatalf("%q %v", got, failure)
	}
	if got, failure := exchange(t, conn, database.LocalAddr().String()); failure == nil {
		t.Errorf("got answer %q, want none", got)
	}
	_ = database.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, from, failure := database.ReadFrom(make([]byte, 100)); failure == nil {
		t.Errorf("%d bytes came from %v", n, from)
	}
	relay := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(conn.LocalAddr().String()))
	if _, err = database.WriteTo([]byte("in"), relay); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, from, failure := conn.ReadFrom(make([]byte, 100)); failure == nil {
		t.Errorf("%d bytes came in from %v", n, from)
	}
}

func TestCredentials(t *testing.T) {
	s := open(t, nil)
	good, password := credential("call_a", time.Hour)
	expired, itsPassword := credential("call_a", -time.Second)
	later := strconv.FormatInt(time.Now().Add(9*time.Hour).Unix(), 10) + ":call_a"
	foreign := ice.Credential("another secret", good)
	for what, c := range map[string][2]string{
		"expired":        {expired, itsPassword},
		"another time":   {later, password},
		"another call":   {strings.Replace(good, "call_a", "call_b", 1), password},
		"another secret": {good, foreign},
		"no password":    {good, ""},
		"no time":        {"call_a", ice.Credential(secret, "call_a")},
		"invalid time":   {"x:call_a", ice.Credential(secret, "x:call_a")},
		"no call":        {"9999999999:", ice.Credential(secret, "9999999999:")},
	} {
		if conn, err := client(t, s, c[0], c[1]).Allocate(); err == nil {
			_ = conn.Close()
			t.Errorf("%s: got an allocation, want an error", what)
		}
	}
	if n := s.Allocations(); n != 0 {
		t.Errorf("%d allocations", n)
	}
}

// TestQuotas checks the limits per call and in total, and that closed allocations no longer count.
func TestQuotas(t *testing.T) {
	s := open(t, func(c *Config) { c.First, c.Last = 43000, 43009 })
	user, password := credential("call_a", time.Hour)
	var conns []net.PacketConn
	for range perCall {
		conns = append(conns, allocate(t, s, "call_a"))
	}
	other, itsPassword := credential("call_a", 2*time.Hour)
	for _, c := range [][2]string{{user, password}, {other, itsPassword}} {
		if _, err := client(t, s, c[0], c[1]).Allocate(); err == nil || !strings.Contains(err.Error(), "486") {
			t.Errorf("beyond the limit of the call: %v", err)
		}
	}
	allocate(t, s, "call_b")
	allocate(t, s, "call_c")
	user, password = credential("call_d", time.Hour)
	if _, err := client(t, s, user, password).Allocate(); err == nil || !strings.Contains(err.Error(), "486") {
		t.Errorf("beyond the total limit: %v", err)
	}
	if err := conns[0].Close(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); s.Allocations() == 10 && time.Since(began) < 5*time.Second; {
		<-time.After(10 * time.Millisecond)
	}
	allocate(t, s, "call_d")
}

func TestLifetime(t *testing.T) {
	s := open(t, nil)
	user, password := credential("call_a", 2*time.Second)
	conn, err := client(t, s, user, password).Allocate()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	began := time.Now()
	for s.Allocations() > 0 && time.Since(began) < 5*time.Second {
		<-time.After(10 * time.Millisecond)
	}
	if took := time.Since(began); took > 2500*time.Millisecond {
		t.Errorf("the allocation ended after %v", took)
	}
}

func TestConfig(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:0")
	good := Config{Addr: at, First: 1, Last: 2, Secret: secret, Gateway: at}
	for want, change := range map[string]func(*Config){
		"no secret":                  func(c *Config) { c.Secret = "" },
		"not a valid range":          func(c *Config) { c.Last = 0 },
		"public address is required": func(c *Config) { c.Addr = netip.MustParseAddrPort("0.0.0.0:0") },
		"no gateway address":         func(c *Config) { c.Gateway = netip.AddrPort{} },
		"turn: listen u":             func(c *Config) { c.Addr = netip.MustParseAddrPort("192.0.2.1:1") },
	} {
		c := good
		change(&c)
		if s, err := Open(context.Background(), c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", want, s, err)
		}
	}
}

// TestParse checks that any user name is either refused or has a call and an expiry.
func TestParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		user := rapid.OneOf(rapid.String(), rapid.StringMatching(`-?[0-9]{1,22}:[a-z_:]{0,5}`)).Draw(t, "user")
		call, until, ok := parse(user)
		if ok && (call == "" || until.Unix() < 0 || !strings.HasSuffix(user, ":"+call)) {
			t.Fatalf("%q is %q until %v", user, call, until)
		}
	})
}

// TestCredentialExpiry checks that a credential is valid one second before its expiry, and invalid at the expiry.
func TestCredentialExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Secret: secret, now: time.Now}
		user, _ := credential("call_a", time.Minute)
		request := &turn.RequestAttributes{Username: user, Realm: realm}
		<-time.After(time.Minute - time.Second)
		if _, _, ok := c.authenticate(request); !ok {
			t.Error("refused before expiry")
		}
		<-time.After(time.Second)
		if _, _, ok := c.authenticate(request); ok {
			t.Error("accepted after expiry")
		}
		request.Username, _ = credential("call_a", time.Minute)
		request.Realm = "elsewhere"
		if _, _, ok := c.authenticate(request); ok {
			t.Error("accepted for another realm")
		}
	})
}
