package admincli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/parley-voice/parley/control/config"
	"github.com/parley-voice/parley/control/recording"
)

// expiryWarning is how long before its end a certificate causes a warning.
const expiryWarning = 14 * 24 * time.Hour

// checkCertificates checks the certificates of HTTPS, SIP over TLS, and STIR.
func (x *Examination) checkCertificates(ctx context.Context) (found []Finding) {
	add := func(result, fix string) { found = append(found, Finding{"certificate", Error, result, fix}) }
	c, now := x.Config, x.Now()
	pair, err := c.HTTPTLS.Load(c.PublicURL)
	switch {
	case err != nil:
		add(err.Error(), "give the certificate chain in PARLEY_HTTP_TLS_CERT and the key that belongs to it in PARLEY_HTTP_TLS_KEY")
	case pair != nil:
		u, _ := url.Parse(c.PublicURL) // the setting was checked
		found = append(found, judgeCertificate("PARLEY_HTTP_TLS_CERT", pair, u.Hostname(), now))
	case c.HTTPTLS.ACME:
		found = append(found, x.checkACME(ctx))
	}
	pair, _, err = c.SIPTLS.Load()
	switch {
	case err != nil:
		add(err.Error(), "give the certificate chain in PARLEY_SIP_TLS_CERT and the key that belongs to it in PARLEY_SIP_TLS_KEY")
	case pair != nil:
		found = append(found, judgeCertificate("PARLEY_SIP_TLS_CERT", pair, "", now))
	}
	if c.Stir != (config.Stir{}) {
		if err = x.CheckSigner(now); err != nil {
			add(err.Error(), "replace the key and the certificate that sign calls")
		} else if x.CheckSigner(now.Add(expiryWarning)) != nil {
			found = append(found, Finding{
				"certificate", Warning, "PARLEY_STIR_CERT expires within 14 days", "replace it, and send SIGHUP to the server",
			})
		} else {
			found = append(found, Finding{"certificate", OK, "PARLEY_STIR_CERT and its key are valid", ""})
		}
	}
	return found
}

// checkACME checks that the CA can reach this machine under the name of PARLEY_PUBLIC_URL.
func (x *Examination) checkACME(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	u, _ := url.Parse(x.Config.PublicURL) // the setting was checked
	addrs, err := x.LookupHost(ctx, u.Hostname())
	mine, _ := ownAddresses() // without them, only PARLEY_MEDIA_IP is known
	_, port, _ := net.SplitHostPort(x.Config.HTTPAddr)
	return judgeACME(u.Hostname(), addrs, err, append(mine, x.Config.MediaIP), port)
}

// judgeACME interprets the addresses of the public host name. mine are the addresses of this machine, and port is that
// of PARLEY_HTTP_ADDR.
func judgeACME(host string, addrs []netip.Addr, err error, mine []netip.Addr, port string) Finding {
	f := Finding{Check: "certificate", Level: Warning}
	isMine := slices.ContainsFunc(addrs, func(a netip.Addr) bool { return slices.Contains(mine, a.Unmap()) })
	unknown, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil && len(addrs) == 0 || isDNS && unknown.IsNotFound:
		f.Level, f.Result = Error, host+" has no address in DNS, so PARLEY_HTTP_ACME gets no certificate for it"
		f.Fix = fmt.Sprintf("add a DNS record with the public address of this machine for %s, or correct PARLEY_PUBLIC_URL", host)
	case err != nil:
		f.Result = fmt.Sprintf("failed to look up %s, the host of PARLEY_PUBLIC_URL: %v", host, err)
		f.Fix = "correct the DNS server of this machine (/etc/resolv.conf)"
	case !isMine:
		f.Result = fmt.Sprintf("%s leads to %s, which is neither an address of this machine nor PARLEY_MEDIA_IP", host, addrs[0].Unmap())
		f.Fix = "correct the DNS record; no action is needed if that address forwards port 443 to this machine"
	case port != "443":
		f.Result = fmt.Sprintf("the CA connects to port 443 of %s, but PARLEY_HTTP_ADDR has port %s", host, port)
		f.Fix = "set PARLEY_HTTP_ADDR=0.0.0.0:443; no action is needed if port 443 is forwarded to it"
	default:
		return Finding{"certificate", OK, host + " leads to this machine; PARLEY_HTTP_ACME gets a certificate when the first client connects", ""}
	}
	return f
}

// judgeCertificate checks a certificate of a server with the name host. If host is empty, the name is not checked.
func judgeCertificate(setting string, pair *tls.Certificate, host string, now time.Time) Finding {
	leaf, f := pair.Leaf, Finding{Check: "certificate", Level: Error, Fix: "renew it, and send SIGHUP to the server"}
	day := leaf.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case now.After(leaf.NotAfter):
		f.Result = fmt.Sprintf("%s expired on %s", setting, day)
	case now.Before(leaf.NotBefore):
		f.Result = fmt.Sprintf("%s is not valid before %s", setting, leaf.NotBefore.UTC().Format(time.RFC3339))
		f.Fix = "correct the clock, or replace the certificate"
	case host != "" && leaf.VerifyHostname(host) != nil:
		f.Result = fmt.Sprintf("%s is not for %s, the host of PARLEY_PUBLIC_URL", setting, host)
		f.Fix = "get a certificate for " + host + ", or correct PARLEY_PUBLIC_URL"
	case leaf.NotAfter.Sub(now) < expiryWarning:
		f.Level, f.Result = Warning, fmt.Sprintf("%s expires on %s", setting, day)
	case host != "" && !isTrusted(pair, now):
		f.Level, f.Result = Warning, setting+" does not lead to a root certificate of this machine"
		f.Fix = "append the intermediate certificates to the file; with a private CA, no action is needed"
	default:
		return Finding{Check: "certificate", Level: OK, Result: fmt.Sprintf("%s is valid until %s", setting, day)}
	}
	return f
}

// isTrusted reports whether a chain leads to a root certificate of the system.
func isTrusted(pair *tls.Certificate, now time.Time) bool {
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(c)
		}
	}
	_, err := pair.Leaf.Verify(x509.VerifyOptions{Intermediates: between, CurrentTime: now})
	return err == nil
}

// probeFile begins the name of the file that checkDisk writes for a moment.
const probeFile = ".parley-doctor-"

// checkDisk checks that the data directory is writable and has enough free space.
func (x *Examination) checkDisk(context.Context) []Finding {
	dir, err := filepath.Abs(x.Config.DataDir)
	if err != nil {
		return []Finding{{"disk", Error, err.Error(), "set PARLEY_DATA_DIR to an absolute path"}}
	}
	existing := dir // the server creates missing folders
	for isMissing(existing) && existing != filepath.Dir(existing) {
		existing = filepath.Dir(existing)
	}
	free := int64(-1)
	f, err := os.CreateTemp(existing, probeFile)
	if err == nil {
		_, err = f.Write(make([]byte, 4096))
		if fault := f.Close(); err == nil {
			err = fault
		}
		_ = os.Remove(f.Name())
		free = recording.FreeSpace(existing)
	}
	return []Finding{judgeDisk(dir, err, free, x.Config.RecordingReserve)}
}

func isMissing(name string) bool {
	_, err := os.Stat(name)
	return os.IsNotExist(err)
}

func judgeDisk(dir string, err error, free, reserve int64) Finding {
	f := Finding{Check: "disk", Level: Error}
	switch {
	case err != nil:
		f.Result = fmt.Sprintf("PARLEY_DATA_DIR %s is not writable: %v", dir, err)
		f.Fix = "free space or grant this user the right to write there, or set PARLEY_DATA_DIR to another folder"
	case free >= 0 && reserve > 0 && free < reserve:
		f.Result = fmt.Sprintf("%d MB are free in %s, less than the %d MB of PARLEY_RECORDING_RESERVE: calls with recording wait",
			free>>20, dir, reserve>>20)
		f.Fix = "free space, or move PARLEY_DATA_DIR to a larger disk"
	case free >= 0 && reserve > 0 && free < 2*reserve:
		f.Level = Warning
		f.Result = fmt.Sprintf("%d MB are free in %s; with less than %d MB, calls with recording wait", free>>20, dir, reserve>>20)
		f.Fix = "free space, or move PARLEY_DATA_DIR to a larger disk"
	default:
		f.Level, f.Result = OK, fmt.Sprintf("%s is writable, %d MB are free", dir, free>>20)
	}
	return f
}

// Files that a server and each of its calls need: the sockets of RTP and RTCP, and connections to three providers.
const (
	serverFiles = 500
	callFiles   = 5
)

// checkFiles checks the limit of open files.
func (x *Examination) checkFiles(context.Context) []Finding {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return []Finding{{"open files", Warning, fmt.Sprintf("the limit is unknown: %v", err), "check ulimit -n"}}
	}
	return []Finding{judgeFiles(limit.Max, x.Config.MaxCalls)} // Go programs raise the limit to the maximum
}

func judgeFiles(limit uint64, calls int) Finding {
	need := uint64(serverFiles + callFiles*calls) //nolint:gosec // calls is at most 10000
	f := Finding{Check: "open files", Level: OK, Result: fmt.Sprintf("the limit is %d; %d calls need %d", limit, calls, need)}
	if limit < need {
		f.Level, f.Fix = Warning, fmt.Sprintf("set LimitNOFILE=%d in the systemd unit, or ulimit -n %[1]d", max(need, 65536))
	}
	return f
}

// checkClock checks that the kernel reports a synchronized clock.
func (x *Examination) checkClock(context.Context) []Finding {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err == nil && (state == unix.TIME_ERROR || t.Status&unix.STA_UNSYNC != 0) {
		return []Finding{{
			"clock", Warning, "the clock of this machine is not synchronized",
			"run chrony or systemd-timesyncd; no action is needed if the host of this virtual machine sets its clock",
		}}
	}
	return []Finding{{"clock", OK, "the clock of this machine is synchronized", ""}}
}
