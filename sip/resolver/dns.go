package resolver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	typeNAPTR    = dnsmessage.Type(35)
	naptrTimeout = 2 * time.Second // time limit of one NAPTR lookup
	maxAnswer    = 4096
)

// A DNS is a Resolver that uses name servers.
type DNS struct {
	// Net looks up SRV records and addresses; nil uses the system's.
	Net *net.Resolver
	// Server is asked for NAPTR records, which net.Resolver does not support:
	// "192.0.2.53:53". If empty, the first server in /etc/resolv.conf is asked.
	Server string
}

func (d *DNS) net() *net.Resolver {
	if d.Net == nil {
		return net.DefaultResolver
	}
	return d.Net
}

// SRV implements Resolver. It may return valid records with an error about
// others.
func (d *DNS) SRV(ctx context.Context, name string) ([]*net.SRV, error) {
	_, records, err := d.net().LookupSRV(ctx, "", "", name)
	return records, err
}

// Addrs implements Resolver.
func (d *DNS) Addrs(ctx context.Context, host string) ([]netip.Addr, error) {
	return d.net().LookupNetIP(ctx, "ip", host)
}

// NAPTR implements Resolver. It asks one server once over UDP, and over TCP after
// a truncated answer.
func (d *DNS) NAPTR(ctx context.Context, name string) ([]NAPTR, error) {
	server := d.Server
	if server == "" {
		var err error
		if server, err = nameServer("/etc/resolv.conf"); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, naptrTimeout)
	defer cancel()
	id := uint16(rand.Uint32()) //nolint:gosec // a guessed id forges a NAPTR record, no secret
	query, err := naptrQuery(id, name)
	if err != nil {
		return nil, fmt.Errorf("NAPTR %s: %w", name, err)
	}
	answer, err := exchange(ctx, "udp", server, query, id)
	if errors.Is(err, errTruncated) {
		answer, err = exchange(ctx, "tcp", server, query, id)
	}
	if err != nil {
		return nil, fmt.Errorf("NAPTR %s: %w", name, err)
	}
	return answer, nil
}

func nameServer(file string) (string, error) {
	f, err := os.Open(file) //nolint:gosec // the system's
	if err != nil {
		return "", fmt.Errorf("name server: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == "nameserver" {
			return net.JoinHostPort(words[1], "53"), nil
		}
	}
	return "", errors.New("name server: none configured")
}

func naptrQuery(id uint16, name string) ([]byte, error) {
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	n, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: typeNAPTR, Class: dnsmessage.ClassINET}},
	}
	return m.Pack()
}

var errTruncated = errors.New("answer cut short")

func exchange(ctx context.Context, network, server string, query []byte, id uint16) ([]NAPTR, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, server)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if end, ok := ctx.Deadline(); ok {
		if err = conn.SetDeadline(end); err != nil {
			return nil, err
		}
	}
	b := make([]byte, maxAnswer)
	if network == "udp" {
		if _, err = conn.Write(query); err != nil {
			return nil, err
		}
		var n int
		if n, err = conn.Read(b); err != nil {
			return nil, err
		}
		return parseAnswer(b[:n], id)
	}
	framed := binary.BigEndian.AppendUint16(nil, uint16(len(query))) //nolint:gosec // a name is 255 bytes at most
	if _, err = conn.Write(append(framed, query...)); err != nil {
		return nil, err
	}
	if _, err = io.ReadFull(conn, b[:2]); err != nil {
		return nil, err
	}
	b = make([]byte, binary.BigEndian.Uint16(b))
	if _, err = io.ReadFull(conn, b); err != nil {
		return nil, err
	}
	return parseAnswer(b, id)
}

func parseAnswer(b []byte, id uint16) ([]NAPTR, error) {
	var p dnsmessage.Parser
	h, err := p.Start(b)
	switch {
	case err != nil:
		return nil, err
	case h.ID != id || !h.Response:
		return nil, errors.New("answer to another question")
	case h.Truncated:
		return nil, errTruncated
	case h.RCode != dnsmessage.RCodeSuccess:
		return nil, fmt.Errorf("server says %s", h.RCode)
	}
	if err := p.SkipAllQuestions(); err != nil {
		return nil, err
	}
	var records []NAPTR
	for {
		rh, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		if rh.Type != typeNAPTR {
			if err = p.SkipAnswer(); err != nil {
				return nil, err
			}
			continue
		}
		raw, err := p.UnknownResource()
		if err != nil {
			return nil, err
		}
		record, err := parseNAPTR(raw.Data)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
}

var errRecord = errors.New("NAPTR record cut short")

// parseNAPTR reads a NAPTR record (RFC 3403 section 4): two numbers, three
// strings and an uncompressed name.
func parseNAPTR(b []byte) (NAPTR, error) {
	if len(b) < 4 {
		return NAPTR{}, errRecord
	}
	n := NAPTR{Order: binary.BigEndian.Uint16(b), Preference: binary.BigEndian.Uint16(b[2:])}
	b = b[4:]
	for _, to := range []*string{&n.Flags, &n.Service, &n.Regexp} {
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return NAPTR{}, errRecord
		}
		*to, b = string(b[1:1+b[0]]), b[1+b[0]:]
	}
	var labels []string
	for {
		if len(b) == 0 || len(b) < 1+int(b[0]) || b[0] > 63 {
			return NAPTR{}, errRecord
		}
		if b[0] == 0 {
			n.Replacement = strings.Join(labels, ".")
			return n, nil
		}
		labels, b = append(labels, string(b[1:1+b[0]])), b[1+b[0]:]
	}
}
