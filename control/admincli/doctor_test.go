package admincli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/minio/minio-go/v7"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/db"
	"github.com/parley-voice/parley/control/trunks"
	"github.com/parley-voice/parley/pipeline/provider/endpoints"
	"github.com/parley-voice/parley/pipeline/provider/selftest"
)

// TestJudgements lists what the checks of the doctor conclude.
func TestJudgements(t *testing.T) {
	at := netip.MustParseAddr
	listen := func(errno syscall.Errno) error {
		return &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", errno)}
	}
	web := socket{"PARLEY_HTTP_ADDR", "tcp", "0.0.0.0:80"}
	settings := func(change func(c *config.Config)) config.Config {
		c := config.Default()
		change(&c)
		return c
	}
	own := []netip.Addr{at("127.0.0.1"), at("10.0.0.5"), at("198.51.100.1")}
	seen := func(media, local, public string) Finding {
		return addresses{at(media), own, "stun:1", netip.MustParseAddrPort(local), netip.MustParseAddrPort(public), nil}.judge()
	}
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	certificate := func(from, until time.Duration) Finding {
		leaf := &x509.Certificate{NotBefore: now.Add(from), NotAfter: now.Add(until), DNSNames: []string{"parley.example"}}
		return judgeCertificate("CERT", &tls.Certificate{Leaf: leaf, Certificate: [][]byte{nil}}, "", now)
	}
	good := db.State{Major: 16, Database: "parley", User: "u", Schema: 300, Want: 300, CanMigrate: true, MaxConns: 97, Nodes: 2}
	database := func(change func(s *db.State)) Finding {
		s := good
		change(&s)
		return judgeDatabase(s, 12)[0]
	}
	refused := func(code string) Finding {
		return explainDatabase(fmt.Errorf("x: %w", &pgconn.PgError{Code: code, Message: "m"}))
	}
	failedProvider := func(url string, err error) Finding {
		err = fmt.Errorf("x: %w", err)
		found := judgeResults([]selftest.Result{{Name: "a", Serves: "tts", Err: err}, {Name: "a", Serves: "asr", Err: err}}, map[string]endpoints.Endpoint{"a": {URL: url}})
		if len(found) != 1 {
			t.Errorf("the same cause has %d findings", len(found))
		}
		return found[0]
	}
	for name, row := range map[string]struct {
		got   Finding
		level Level
		want  string // part of the result and the fix
	}{
		"port free":              {judgeSocket(web, nil, program{}), OK, "is free"},
		"port of parley":         {judgeSocket(web, listen(syscall.EADDRINUSE), program{"parley", 7, "parley serve", true, true}), OK, "the server of this data directory, process 7"},
		"port of another parley": {judgeSocket(web, listen(syscall.EADDRINUSE), program{"parley", 7, "parley serve", true, false}), Error, "another data directory, process 7: parley serve stop that process, or set PARLEY_HTTP_ADDR"},
		"port taken":             {judgeSocket(web, listen(syscall.EADDRINUSE), program{"nginx", 7, "nginx -g", false, false}), Error, "nginx, process 7 stop that program, or set PARLEY_HTTP_ADDR"},
		"port of a stranger":     {judgeSocket(web, listen(syscall.EADDRINUSE), program{}), Warning, "another user run parley doctor as root"},
		"port below 1024":        {judgeSocket(web, listen(syscall.EACCES), program{}), Error, "CAP_NET_BIND_SERVICE"},
		"address not here":       {judgeSocket(web, listen(syscall.EADDRNOTAVAIL), program{}), Error, "does not have the address"},
		"enough ports":           {judgeRTP(config.Default()), OK, "enough for 5000 calls"},
		"ports for few calls":    {judgeRTP(settings(func(c *config.Config) { c.RTPPorts = [2]int{20001, 20006} })), Warning, "enough for 2 calls; PARLEY_MAX_CALLS is 1000 set PARLEY_RTP_PORTS to at least 2000 ports"},
		"web call port":          {judgeRTP(settings(func(c *config.Config) { c.WebRTC.UDP = 20100 })), Error, "PARLEY_WEBRTC_UDP_PORT 20100 lies within"},
		"relay ports": {
			judgeRTP(settings(func(c *config.Config) { c.WebRTC.Relay, c.WebRTC.RelayPorts = 3478, [2]int{29000, 30999} })),
			Error, "PARLEY_TURN_RELAY_PORTS 29000-30999 overlaps",
		},
		"loopback":               {addresses{media: at("127.0.0.1"), own: own}.judge(), Warning, "only this machine reaches"},
		"own address, no STUN":   {addresses{media: at("198.51.100.1"), own: own}.judge(), OK, "not checked"},
		"private, no STUN":       {addresses{media: at("10.0.0.5"), own: own}.judge(), Warning, "a private address of this machine"},
		"foreign, no STUN":       {addresses{media: at("192.0.2.1"), own: own}.judge(), Warning, "not an address of this machine; no STUN server is set"},
		"STUN does not answer":   {addresses{at("198.51.100.1"), own, "stun:1", netip.AddrPort{}, netip.AddrPort{}, errors.New("no answer")}.judge(), Warning, "does not answer, so the public address was not checked: no answer"},
		"public address":         {seen("192.0.2.1", "10.0.0.5:40000", "192.0.2.1:40000"), OK, "is the public address"},
		"NAT changes ports":      {seen("192.0.2.1", "10.0.0.5:40000", "192.0.2.1:1024"), Warning, "NAT changes ports"},
		"private behind NAT":     {seen("10.0.0.5", "10.0.0.5:40000", "192.0.2.1:40000"), Warning, "set PARLEY_MEDIA_IP=192.0.2.1"},
		"foreign address":        {seen("192.0.2.9", "10.0.0.5:40000", "192.0.2.1:40000"), Error, "is neither an address of this machine nor the public address"},
		"ACME host":              {judgeACME("p.example", own[2:], nil, own, "443"), OK, "p.example leads to this machine"},
		"ACME host unknown":      {judgeACME("p.example", nil, &net.DNSError{IsNotFound: true}, own, "443"), Error, "p.example has no address in DNS, so PARLEY_HTTP_ACME gets no certificate for it add a DNS record"},
		"ACME host not found":    {judgeACME("p.example", nil, &net.DNSError{Err: "timeout"}, own, "443"), Warning, "failed to look up p.example"},
		"ACME host elsewhere":    {judgeACME("p.example", []netip.Addr{at("192.0.2.1")}, nil, own, "443"), Warning, "leads to 192.0.2.1, which is neither"},
		"ACME port":              {judgeACME("p.example", own[2:], nil, own, "8080"), Warning, "port 443 of p.example, but PARLEY_HTTP_ADDR has port 8080"},
		"trunk without DNS":      {judgeTrunk(trunks.Trunk{Name: "t", Proxy: "sip:x"}, fmt.Errorf("x: %w", &net.DNSError{Name: "x"})), Error, "correct the host in the trunk's proxy"},
		"provider without DNS":   {failedProvider("", &net.DNSError{Name: "x", Err: "gone"}), Error, "speech-to-text a, voice a: x: lookup x: gone give this machine a DNS server"},
		"provider URL":           {failedProvider("https://x", &net.DNSError{Name: "x"}), Error, "correct the host in its URL"},
		"provider refused":       {failedProvider("", listen(syscall.ECONNREFUSED)), Error, "in the firewall"},
		"provider key":           {failedProvider("", errors.New("401")), Error, "correct its key and URL; parley providers check a"},
		"certificate":            {certificate(-time.Hour, 90*24*time.Hour), OK, "valid until 2026-07-30"},
		"certificate ends":       {certificate(-time.Hour, 13*24*time.Hour), Warning, "expires on 2026-05-14"},
		"certificate expired":    {certificate(-time.Hour, -time.Second), Error, "expired on 2026-04-30"},
		"certificate not yet":    {certificate(time.Hour, 90*24*time.Hour), Error, "not valid before"},
		"disk":                   {judgeDisk("/d", nil, 10<<30, 1<<30), OK, "10240 MB are free"},
		"little space":           {judgeDisk("/d", nil, 3<<29, 1<<30), Warning, "1536 MB are free"},
		"no space":               {judgeDisk("/d", nil, 1<<29, 1<<30), Error, "calls with recording wait free space"},
		"no check of the space":  {judgeDisk("/d", nil, 1<<20, -1), OK, "is writable"},
		"not writable":           {judgeDisk("/d", syscall.EROFS, -1, 1<<30), Error, "not writable: read-only file system"},
		"files":                  {judgeFiles(65536, 10_000), OK, "10000 calls need 50500"},
		"few files":              {judgeFiles(1024, 200), Warning, "set LimitNOFILE=65536"},
		"good database":          {database(func(*db.State) {}), OK, "PostgreSQL 16, schema 300, writable; 97 connections, of which 2 nodes open up to 26"},
		"old PostgreSQL":         {database(func(s *db.State) { s.Major = 13 }), Error, "upgrade to PostgreSQL 14"},
		"standby":                {database(func(s *db.State) { s.Replica, s.ReadOnly = true, true }), Error, "standby"},
		"read-only":              {database(func(s *db.State) { s.ReadOnly = true }), Error, "read-only"},
		"no right to migrate":    {database(func(s *db.State) { s.CanMigrate, s.Schema = false, 299 }), Error, "may not create tables"},
		"no right, none needed":  {database(func(s *db.State) { s.CanMigrate = false }), OK, "schema 300"},
		"older schema":           {database(func(s *db.State) { s.Schema = 299 }), Warning, "version 299, this program needs 300"},
		"newer schema":           {database(func(s *db.State) { s.Schema = 301 }), Warning, "newer than the 300"},
		"empty database":         {database(func(s *db.State) { s.Schema = 0 }), Warning, "no tables yet"},
		"too few connections":    {database(func(s *db.State) { s.MaxConns = 25 }), Error, "2 nodes open up to 26 connections; PostgreSQL accepts 25"},
		"clock behind":           {database(func(s *db.State) { s.Skew = 3 * time.Second }), Error, "3s behind that of the database"},
		"clock ahead":            {database(func(s *db.State) { s.Skew = -3 * time.Second }), Error, "3s ahead of that of the database"},
		"clock not known better": {database(func(s *db.State) { s.Skew, s.Uncertainty = 3*time.Second, 2*time.Second }), OK, ""},
		"password":               {refused("28P01"), Error, "correct the password in PARLEY_DATABASE_URL"},
		"user":                   {refused("28000"), Error, "pg_hba.conf"},
		"no such database":       {refused("3D000"), Error, "CREATE DATABASE"},
		"connections used up":    {refused("53300"), Error, "raise max_connections"},
		"starting":               {refused("57P03"), Error, "PostgreSQL refuses: m"},
		"no such host":           {explainDatabase(&net.DNSError{Name: "db.example", IsNotFound: true}), Error, "correct the host in PARLEY_DATABASE_URL"},
		"no answer":              {explainDatabase(context.DeadlineExceeded), Error, "did not answer within 5 s"},
		"bucket":                 {judgeBucket("list", nil, true), OK, "written, read, listed and deleted"},
		"bucket key":             {judgeBucket("write", fmt.Errorf("x: %w", minio.ErrorResponse{Code: "InvalidAccessKeyId"}), true), Error, "correct PARLEY_S3_ID"},
		"bucket rights":          {judgeBucket("delete", minio.ErrorResponse{Code: "AccessDenied"}, true), Error, "failed to delete a file"},
		"no bucket":              {judgeBucket("write", minio.ErrorResponse{Code: "NoSuchBucket"}, true), Error, "create the bucket"},
		"bucket down":            {judgeBucket("write", errors.New("refused"), true), Error, "start the server of the bucket"},
		"bucket folder":          {judgeBucket("write", syscall.EACCES, false), Error, "grant this user"},
	} {
		text := row.got.Result + " " + row.got.Fix
		if row.got.Level != row.level || !strings.Contains(text, row.want) {
			t.Errorf("%s: %s %q, want %s %q", name, row.got.Level, text, row.level, row.want)
		}
		if (row.got.Level == OK) != (row.got.Fix == "") {
			t.Errorf("%s: %s with the fix %q", name, row.got.Level, row.got.Fix)
		}
	}
}

func TestSocketInodes(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0
   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 13 1 0
   3: 0500000A:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 14 1 0 100 0 0 10 0
   4: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 15 1 0 100 0 0 10 0
`
	for at, want := range map[string][]string{
		"127.0.0.1:8080": {"11", "13"}, "10.0.0.5:8080": {"13", "14"}, "0.0.0.0:8080": {"11", "13", "14"}, "127.0.0.1:8082": nil,
	} {
		if got := socketInodes(table, true, netip.MustParseAddrPort(at)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	}
}
